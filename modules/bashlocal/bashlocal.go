package bashlocal

import (
	"context"

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
	Config  Config
	Runtime subprocess.Runtime
}

// Result is what New gives. The executor runs commands once Run.Start has found bash.
type Result struct {
	fx.Out
	Executor shell.Executor
	Run      module.Runner
}

// Module returns the module bash-local.
func Module() module.Module {
	return module.Define(module.Spec[Config]{
		Name:        "bash-local",
		Aliases:     []string{"@deepseek-ai/dsh-bash-local"},
		Summary:     "runs shell commands with bash, unconfined",
		Platforms:   module.Unix,
		Default:     DefaultConfig,
		Constructor: New,
	})
}

// New returns an executor over p.Runtime.
func New(p Params) (Result, error) {
	if err := p.Config.Validate(); err != nil {
		return Result{}, err
	}
	x := &executor{bash: bashexec.New(p.Runtime, p.Config)}
	return Result{Executor: x, Run: module.Runner{Start: x.bash.Locate}}, nil
}

// executor runs every command as it is, with nothing between bash and the runtime.
type executor struct{ bash *bashexec.Executor }

var _ shell.Executor = (*executor)(nil)

func (x *executor) Resolve(r shell.Request) (shell.Spec, error) {
	if r.Policy != nil {
		return shell.Spec{}, &shell.InvalidError{Field: "policy", Reason: "this executor confines nothing"}
	}
	return x.bash.Resolve(r)
}

func (x *executor) Mode() (sandbox.Mode, bool) { return "", false }

func (x *executor) Run(ctx context.Context, s shell.Spec) (shell.Result, error) {
	return x.bash.Run(ctx, s, nil)
}

func (x *executor) Start(ctx context.Context, s shell.Spec) (shell.Process, error) {
	return x.bash.Start(ctx, s, nil)
}
