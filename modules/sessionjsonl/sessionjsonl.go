package sessionjsonl

import (
	"context"
	"errors"
	"log/slog"

	"go.uber.org/fx"

	"dsh/module"
	"dsh/modules/sandbox"
	"dsh/modules/session"
	"dsh/modules/shell"
)

// Params is what New takes.
type Params struct {
	fx.In

	Config Config
	Logger *slog.Logger
	Facts  shell.Facts `optional:"true"`
}

// Result is what New gives.
type Result struct {
	fx.Out

	Store     session.Store
	Overrides sandbox.Overrides
	Runner    module.Runner
}

// Module returns the module session-jsonl.
func Module() module.Module {
	return module.Define(module.Spec[Config]{
		Name:        "session-jsonl",
		Aliases:     []string{"@deepseek-ai/dsh-session-persistence-jsonl"},
		Summary:     "keeps sessions as files of JSON lines",
		Constructor: New,
	})
}

// New returns a store of the sessions under p.Config.Root, and touches nothing there.
func New(p Params) (Result, error) {
	if err := p.Config.Validate(); err != nil {
		return Result{}, err
	}
	root, err := p.Config.root()
	if err != nil {
		return Result{}, err
	}
	s := &store{root: root, log: p.Logger, live: map[string]*file{}}
	undo := func() {}
	return Result{Store: s, Overrides: s, Runner: module.Runner{
		Start: func(context.Context) error {
			if p.Facts == nil {
				return nil
			}
			registered, err := p.Facts.Register(s.facts())
			if err == nil {
				undo = registered
			}
			return err
		},
		Stop: func(context.Context) error {
			undo()
			return s.close()
		},
	}}, nil
}

// facts tells commands which file their session is in.
func (s *store) facts() shell.Contributor {
	const key = "DSH_SESSION_JSONL"
	return shell.Contributor{
		Name:      "session-persistence-jsonl",
		Variables: []shell.Variable{{Key: key, Description: "the log of the session that the command runs in"}},
		Resolve: func(_ context.Context, e shell.Execution) (map[string]string, error) {
			if _, live := s.Live(e.SessionID); !live {
				return nil, nil
			}
			return map[string]string{key: s.path(e.SessionID)}, nil
		},
	}
}

// SandboxMode implements sandbox.Overrides.
func (s *store) SandboxMode(ctx context.Context, id string) (mode sandbox.Mode, ok bool, err error) {
	if open, live := s.Live(id); live {
		mode, ok = open.SandboxMode()
		return mode, ok, nil
	}
	log, err := s.Read(ctx, id)
	if errors.Is(err, session.ErrNotFound) {
		return "", false, nil
	}
	for _, e := range log.Events {
		if m, is := e.Data.(*session.SandboxMode); is {
			mode, ok = m.Mode, true
		}
	}
	return mode, ok, err
}
