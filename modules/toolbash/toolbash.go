package toolbash

import (
	"errors"

	"go.uber.org/fx"

	"dsh/module"
	"dsh/modules/agent"
	"dsh/modules/approval"
	"dsh/modules/jobs"
	"dsh/modules/sandbox"
	"dsh/modules/shell"
	"dsh/modules/tools"
)

// Params is what the tool is made from.
type Params struct {
	fx.In
	Config Config
	Tools  tools.Registry
	Shell  shell.Executor
	Facts  shell.Facts

	Policies sandbox.Policies `optional:"true"` // needed when Shell confines
	Approval approval.Service `optional:"true"` // without it nothing is escalated
	Jobs     jobs.Registry    `optional:"true"` // without it nothing is run in the background
	Prompt   agent.Prompt     `optional:"true"` // told how to read a result
}

// Result is what the row provides.
type Result struct {
	fx.Out
	Runner module.Runner
}

// Module returns the module tool-bash.
func Module() module.Module {
	return module.Define(module.Spec[Config]{
		Name:        "tool-bash",
		Aliases:     []string{"@deepseek-ai/dsh-tool-bash"},
		Summary:     "the tool bash: runs a shell command through the mounted executor",
		Default:     DefaultConfig,
		Constructor: New,
	})
}

const guidance = "Check the [exit code: N] marker on every bash result; investigate failures before moving on."

// New returns the row's active part, which registers the tool.
func New(p Params) Result {
	b := &bash{config: p.Config, shell: p.Shell, facts: p.Facts, policies: p.Policies, approval: p.Approval, jobs: p.Jobs}
	return Result{Runner: module.Registering(
		func() (func(), error) {
			if err := b.meetShell(); err != nil {
				return nil, err
			}
			return p.Tools.Register(b.definition())
		},
		func() (func(), error) {
			return agent.Add(p.Prompt, []agent.Section{agent.Plain("tool:bash", agent.OrderBash, guidance)}, nil)
		},
	)}
}

// meetShell asks the executor, which has started by now, whether it confines, and refuses what does not go with that.
func (b *bash) meetShell() error {
	_, b.confines = b.shell.Mode()
	switch {
	case b.confines && b.policies == nil:
		return errors.New("tool-bash: the mounted bash executor confines but ctx.sandboxPolicy is missing")
	case !b.confines && b.policies != nil && b.policies.Default() == sandbox.ReadOnly:
		// The wider modes are no promise of it: workspace-write is what stands in the rows when nobody chose.
		return errors.New("tool-bash: the policy's mode is read-only, but the mounted bash executor confines nothing")
	}
	return nil
}

type bash struct {
	config Config
	shell  shell.Executor
	facts  shell.Facts

	policies sandbox.Policies // nil: none are mounted
	approval approval.Service // nil: none is mounted
	jobs     jobs.Registry    // nil: none is mounted
	confines bool             // the executor does, so that there is something to escalate
}
