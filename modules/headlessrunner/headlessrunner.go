package headlessrunner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"go.uber.org/fx"

	"dsh/module"
	"dsh/modules/agent"
	"dsh/modules/jobs"
	"dsh/modules/llm"
	"dsh/modules/session"
)

// Params is what New takes.
type Params struct {
	fx.In
	Agent agent.Agent
	Model llm.Model
	Store session.Store
	Jobs  jobs.Registry `optional:"true"` // without it nothing runs in the background
}

// Result is what New gives.
type Result struct {
	fx.Out
	Runner agent.Runner
}

// Module returns the module headless-runner.
func Module() module.Module {
	return module.Define(module.Spec[Config]{
		Name:        "headless-runner",
		Aliases:     []string{"@deepseek-ai/dsh-headless"},
		Summary:     "runs one task with the agent, to its end",
		Constructor: New,
	})
}

// New returns a runner.
func New(p Params) Result {
	return Result{Runner: &runner{agent: p.Agent, model: p.Model, store: p.Store, jobs: p.Jobs}}
}

type runner struct {
	agent agent.Agent
	model llm.Model
	store session.Store
	jobs  jobs.Registry // nil: none
}

var _ agent.Runner = (*runner)(nil)

// endWithin is how long jobs have to end once the task is over: longer than a command's grace.
const endWithin = 8 * time.Second

// Run implements agent.Runner.
func (r *runner) Run(ctx context.Context, t agent.Task) (report agent.Report, err error) {
	if strings.TrimSpace(t.Text) == "" {
		return report, &agent.InvalidError{Reason: `a task is required, for example: dsh "run the tests"`}
	}
	if ctx.Err() != nil {
		return report, context.Cause(ctx)
	}
	// Without a key there is no session either.
	if _, err := r.model.Target(ctx, ""); err != nil {
		return report, err
	}
	s, err := r.open(ctx, t)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	w := watcher{task: t}
	report.SessionID = s.Header().ID
	if t.Opened != nil {
		t.Opened(report.SessionID)
	}
	w.begun(s, t.Resume != "")

	report.Outcome, err = r.agent.Turn(ctx, s, agent.Input{Messages: []llm.Message{llm.UserText(t.Text)}, Observe: w.observe})
	ended, jerr := r.end(ctx, report.SessionID)
	report.Ended = ended
	for _, j := range ended {
		w.warn("ended the background job %s (%s), which was still running when the task was over", j.ID, j.Label)
	}
	return report, errors.Join(err, jerr)
}

// open returns the session of a task.
func (r *runner) open(ctx context.Context, t agent.Task) (session.Session, error) {
	if t.Resume != "" {
		s, err := r.store.Open(ctx, t.Resume)
		if err != nil {
			return nil, fmt.Errorf("resume %s: %w", t.Resume, err)
		}
		// Every turn would fail, and leave its failure in the log.
		if info, err := os.Stat(s.Header().CWD); err != nil || !info.IsDir() {
			gone := &agent.InvalidError{Reason: fmt.Sprintf("resume %s: its directory, %s, is not there any more", t.Resume, s.Header().CWD)}
			return nil, errors.Join(gone, s.Close())
		}
		return s, nil
	}
	cwd := t.CWD
	if cwd == "" {
		var err error
		if cwd, err = os.Getwd(); err != nil {
			return nil, err
		}
	}
	return r.store.Create(ctx, session.New{CWD: cwd})
}

// end ends the jobs of a session, and returns those that were alive.
func (r *runner) end(ctx context.Context, id string) ([]jobs.Snapshot, error) {
	if r.jobs == nil {
		return nil, nil
	}
	var alive []jobs.Snapshot
	var names []string
	for _, j := range r.jobs.List(id) {
		if j.Owner == id && !j.Status.Terminal() {
			alive = append(alive, j)
			names = append(names, j.ID)
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer cancel()
	if err := r.jobs.EndSession(ctx, id); err != nil {
		return alive, &agent.LeftoverError{Jobs: names, Err: err}
	}
	return alive, nil
}
