package approvalterminal

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"strings"

	"go.uber.org/fx"

	"dsh/module"
	"dsh/modules/agent"
	"dsh/modules/approval"
	"dsh/modules/session"
)

// Params is what New takes.
type Params struct {
	fx.In

	Config Config
	Log    *slog.Logger
	Store  session.Store `optional:"true"` // its sessions log what was asked for them
	Prompt agent.Prompt  `optional:"true"`
}

// Result is what New gives.
type Result struct {
	fx.Out

	Service approval.Service
	Runner  module.Runner
}

// Module returns the module approval-terminal.
func Module() module.Module {
	return module.Define(module.Spec[Config]{
		Name:        "approval-terminal",
		Aliases:     []string{"@deepseek-ai/dsh-user-approval"},
		Summary:     "asks on the terminal before something is allowed",
		Default:     DefaultConfig,
		Constructor: New,
	})
}

// New returns a service that asks as p.Config says.
func New(p Params) (Result, error) {
	if err := p.Config.Validate(); err != nil {
		return Result{}, err
	}
	return Result{
		Service: &terminal{policy: p.Config.Policy, log: p.Log, store: p.Store, turn: make(chan struct{}, 1)},
		Runner:  telling(p.Prompt, p.Config.Policy),
	}, nil
}

type terminal struct {
	policy Policy
	log    *slog.Logger
	store  session.Store // nil: none
	turn   chan struct{} // holds a token while a question is on the screen
}

var _ approval.Service = (*terminal)(nil)

// device is a terminal that is open for one question. Closing it ends a read.
type device interface {
	io.ReadWriteCloser
	// discard forgets what was typed before the question was there.
	discard()
}

// Ask implements approval.Service.
func (s *terminal) Ask(ctx context.Context, r approval.Request) approval.Outcome {
	return s.audited(r, func() approval.Outcome { return s.decide(ctx, r) })
}

func (s *terminal) decide(ctx context.Context, r approval.Request) approval.Outcome {
	switch {
	case ctx.Err() != nil:
		return approval.Cancelled
	case s.policy == Never:
		return approval.Rejected
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return approval.Cancelled
	}
	if ctx.Err() != nil {
		return approval.Cancelled
	}
	d, err := open()
	if err != nil {
		s.log.Debug("nobody to ask for approval", "error", err)
		return approval.Unavailable
	}
	outcome := ask(ctx, d, r)
	s.log.Info("approval asked", "tool", r.Tool, "call", r.CallID, "outcome", string(outcome))
	return outcome
}

// ask shows a question and waits for its answer. It closes d.
func ask(ctx context.Context, d device, r approval.Request) approval.Outcome {
	d.discard()
	if _, err := io.WriteString(d, question(r)); err != nil {
		d.Close()
		return approval.Unavailable
	}
	stop := context.AfterFunc(ctx, func() { d.Close() })
	answer, err := bufio.NewReader(io.LimitReader(d, maxAnswer)).ReadString('\n')
	if !stop() {
		return approval.Cancelled
	}
	defer d.Close()
	if err != nil { // the end of the input, or of the terminal
		io.WriteString(d, "\n")
		return approval.Unavailable
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return approval.AllowedOnce
	}
	return approval.Rejected
}

const (
	maxAnswer = 1024
	maxReason = 2000
	maxDetail = 4000
)

// question is what a person reads. What is asked for comes from a model: it must not be able to draw over the question.
func question(r approval.Request) string {
	var b strings.Builder
	b.WriteString("\ndsh: the tool " + shown(r.Tool, maxReason) + " asks for approval\n")
	if r.Detail != "" {
		b.WriteString("  to run: " + shown(r.Detail, maxDetail) + "\n")
	}
	if r.Reason != "" {
		b.WriteString("  reason: " + shown(r.Reason, maxReason) + "\n")
	}
	b.WriteString("Allow this once? [y/N] ")
	return b.String()
}
