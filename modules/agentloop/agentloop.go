package agentloop

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"sync"
	"time"

	"go.uber.org/fx"

	"dsh/internal/dshhome"
	"dsh/module"
	"dsh/modules/agent"
	"dsh/modules/internal/rundir"
	"dsh/modules/jobs"
	"dsh/modules/llm"
	"dsh/modules/session"
	"dsh/modules/tools"
)

// Params is what New takes.
type Params struct {
	fx.In
	Config Config
	Model  llm.Model
	Tools  tools.Registry
	Prompt agent.Prompt
	Jobs   jobs.Registry `optional:"true"` // without it nothing runs in the background
	Store  session.Store `optional:"true"` // not used, but stops later: a turn that is aborted still has something to log
	Log    *slog.Logger
}

// Result is what New gives.
type Result struct {
	fx.Out
	Agent agent.Agent
	Run   module.Runner
}

// Module returns the module agent-loop.
func Module() module.Module {
	return module.Define(module.Spec[Config]{
		Name:        "agent-loop",
		Aliases:     []string{"@deepseek-ai/dsh-agent-loop"},
		Summary:     "the agent: asks the model, calls its tools, and asks again",
		Default:     DefaultConfig,
		Constructor: New,
	})
}

// New returns an agent that works as p.Config says.
func New(p Params) (Result, error) {
	if err := p.Config.Validate(); err != nil {
		return Result{}, err
	}
	home, err := dshhome.Dir()
	if err != nil {
		return Result{}, err
	}
	id := make([]byte, 8)
	_, _ = rand.Read(id) // never fails
	l := &loop{
		config: p.Config, model: p.Model, tools: p.Tools, prompt: p.Prompt, jobs: p.Jobs, log: p.Log,
		home: home, files: rundir.New(home, hex.EncodeToString(id)),
		turns: map[string]context.CancelCauseFunc{},
	}
	return Result{Agent: l, Run: module.Runner{Stop: l.stop}}, nil
}

type loop struct {
	config Config
	model  llm.Model
	tools  tools.Registry
	prompt agent.Prompt
	jobs   jobs.Registry // nil: none
	log    *slog.Logger
	home   string
	files  *rundir.Dir // for results that are too long

	mu      sync.Mutex
	stopped bool
	turns   map[string]context.CancelCauseFunc // of open turns, by session
	open    sync.WaitGroup
}

var _ agent.Agent = (*loop)(nil)

var errStopped = errors.New("the agent has stopped")

// Turn implements agent.Agent.
func (l *loop) Turn(ctx context.Context, s session.Session, in agent.Input) (agent.Outcome, error) {
	if err := check(in); err != nil {
		return agent.Outcome{}, err
	}
	if ctx.Err() != nil {
		return agent.Outcome{}, context.Cause(ctx)
	}
	ctx, done, err := l.begin(ctx, s)
	if err != nil {
		return agent.Outcome{}, err
	}
	defer done()
	if limit := time.Duration(l.config.MaxTurnMs) * time.Millisecond; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, tooLong(l.config.MaxTurnMs))
		defer cancel()
	}
	t := &turn{loop: l, s: s, in: in, number: s.Position().Turns + 1}
	err = t.run(ctx)
	return t.outcome, err
}

func check(in agent.Input) error {
	if len(in.Messages) == 0 {
		return &agent.InvalidError{Reason: "a turn begins with at least one message"}
	}
	for _, m := range in.Messages {
		if m.Role != llm.RoleUser || m.Text() == "" {
			return &agent.InvalidError{Reason: "a turn begins with messages in the user's role, with text"}
		}
	}
	return nil
}

// begin takes the session for a turn, until done. The context ends with ctx or when the row stops.
func (l *loop) begin(ctx context.Context, s session.Session) (context.Context, func(), error) {
	id := s.Header().ID
	l.mu.Lock()
	defer l.mu.Unlock()
	switch _, busy := l.turns[id]; {
	case l.stopped:
		return nil, nil, errStopped
	case busy, s.Position().Turn != 0:
		return nil, nil, agent.ErrBusy
	}
	ctx, cancel := context.WithCancelCause(ctx)
	l.turns[id] = cancel
	l.open.Add(1)
	return ctx, func() {
		cancel(nil)
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.turns, id)
		l.open.Done()
	}, nil
}

func (l *loop) stop(ctx context.Context) error {
	l.mu.Lock()
	l.stopped = true
	for _, cancel := range l.turns {
		cancel(&agent.AbortError{Abort: session.Abort{Kind: "disposed"}})
	}
	l.mu.Unlock()
	closed := make(chan struct{})
	go func() { // outlives this call when a turn does
		l.open.Wait()
		close(closed)
	}()
	select {
	case <-closed:
		return l.files.Close()
	case <-ctx.Done():
		return errors.Join(errors.New("a turn is still open"), l.files.Close())
	}
}
