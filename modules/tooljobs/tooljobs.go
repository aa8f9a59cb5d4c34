package tooljobs

import (
	"go.uber.org/fx"

	"dsh/module"
	"dsh/modules/agent"
	"dsh/modules/jobs"
	"dsh/modules/tools"
)

// Params is what the tools are made from.
type Params struct {
	fx.In
	Config Config
	Jobs   jobs.Registry
	Tools  tools.Registry

	Prompt agent.Prompt `optional:"true"` // told how to deal with jobs
}

// Result is what the row provides.
type Result struct {
	fx.Out
	Runner module.Runner
}

// Module returns the module tool-jobs.
func Module() module.Module {
	return module.Define(module.Spec[Config]{
		Name:        "tool-jobs",
		Aliases:     []string{"@deepseek-ai/dsh-tool-jobs"},
		Summary:     "the tools job_output, job_list and job_kill: a session looks after its background jobs",
		Default:     DefaultConfig,
		Constructor: New,
	})
}

const guidance = "Keep track of every background job that you start. You are told in this session when a job ends: do not poll " +
	"or sleep for it, and go on with work that does not depend on it. Before a final answer, collect the jobs that still matter " +
	"with job_output (wait: true only when nothing else is left to do) and end the others with job_kill."

// New returns the row's active part, which registers the tools.
func New(p Params) (Result, error) {
	if err := p.Config.Validate(); err != nil {
		return Result{}, err
	}
	t := &toolset{config: p.Config, jobs: p.Jobs}
	tool := func(d tools.Definition) module.Registration {
		return func() (func(), error) { return p.Tools.Register(d) }
	}
	return Result{Runner: module.Registering(
		tool(t.output()), tool(t.list()), tool(t.kill()),
		func() (func(), error) {
			return agent.Add(p.Prompt, []agent.Section{agent.Plain("tool:jobs", agent.OrderJobs, guidance)}, nil)
		},
		func() (func(), error) { return p.Tools.AfterExecute(t.bound), nil },
		func() (func(), error) { return p.Jobs.Control(), nil },
	)}, nil
}

type toolset struct {
	config Config
	jobs   jobs.Registry
}

func session(e tools.Execution) string {
	if e.Session == nil {
		return ""
	}
	return e.Session.ID
}
