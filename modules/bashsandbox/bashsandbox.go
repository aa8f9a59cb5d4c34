package bashsandbox

import (
	"context"
	"fmt"

	"go.uber.org/fx"

	"dsh/module"
	"dsh/modules/internal/bashexec"
	"dsh/modules/sandbox"
	"dsh/modules/shell"
	"dsh/modules/subprocess"
)

// Params is what New takes.
type Params struct {
	fx.In

	Config   Config
	Runtime  subprocess.Runtime
	Sandbox  sandbox.Provider
	Policies sandbox.Policies
}

// Result is what New gives. The executor runs commands once Run.Start has found bash.
type Result struct {
	fx.Out

	Executor shell.Executor
	Run      module.Runner
}

// Module returns the module bash-sandbox.
func Module() module.Module {
	return module.Define(module.Spec[Config]{
		Name:        "bash-sandbox",
		Aliases:     []string{"@deepseek-ai/dsh-bash-sandbox"},
		Summary:     "runs shell commands with bash, each confined to its policy",
		Platforms:   module.Unix,
		Default:     DefaultConfig,
		Constructor: New,
	})
}

// New returns an executor over p.Runtime that confines with p.Sandbox.
func New(p Params) (Result, error) {
	if err := p.Config.Validate(); err != nil {
		return Result{}, err
	}
	x := &executor{
		bash: bashexec.New(p.Runtime, p.Config), sandbox: p.Sandbox, policies: p.Policies, ownCwd: p.Config.Cwd != "",
	}
	return Result{Executor: x, Run: module.Runner{Start: x.bash.Locate}}, nil
}

type executor struct {
	bash     *bashexec.Executor
	sandbox  sandbox.Provider
	policies sandbox.Policies
	ownCwd   bool
}

var _ shell.Executor = (*executor)(nil)

// Mode implements shell.Executor.
func (x *executor) Mode() (sandbox.Mode, bool) { return x.policies.Default(), true }

// Resolve implements shell.Executor.
func (x *executor) Resolve(r shell.Request) (shell.Spec, error) {
	if r.Policy == nil {
		p, err := x.policies.Resolve(context.Background(), sandbox.Session{}, "")
		if err != nil {
			return shell.Spec{}, err
		}
		r.Policy = &p
	} else {
		p := *r.Policy // the caller's may change
		r.Policy = &p
	}
	if r.Workdir == "" && !x.ownCwd {
		r.Workdir = r.Policy.WorkspaceRoot
	}
	return x.bash.Resolve(r)
}

// policy returns what s may do. A Spec that Resolve did not make, without a policy, may do nothing.
func policy(s shell.Spec) (sandbox.Policy, error) {
	if s.Policy == nil {
		return sandbox.Policy{}, &shell.InvalidError{Field: "policy", Reason: "a command that is to be confined has none"}
	}
	if err := s.Policy.Validate(); err != nil {
		return sandbox.Policy{}, &shell.InvalidError{Field: "policy", Reason: err.Error()}
	}
	return *s.Policy, nil
}

// attempts is how often a command is confined whose runner fails before it executes it: once for each way that there is,
// and once because what the runner stumbled over may have gone meanwhile.
const attempts = 3

func unavailable(m sandbox.Mode, reason string) error {
	if reason == "" {
		reason = fmt.Sprintf("the runner failed %d times", attempts)
	}
	return &sandbox.UnavailableError{Mode: m, Reason: reason}
}
