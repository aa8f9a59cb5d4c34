// Package llmtest is the suite that every llm.Model passes.
package llmtest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dsh/modules/llm"
)

// Step is what a model is made to say to one attempt at a call.
type Step struct {
	Content []llm.Block // tool calls without ids: the model gives them
	// Failure fails the attempt: its Code is one that a provider can cause, and RetryAfterMs is a multiple of a second.
	Failure *llm.Error
	// Silent says nothing until the call is given up.
	Silent bool
}

// Run checks the models that newModel makes, each of which is to play the steps in order, one for each attempt, and to
// try again at least three times.
func Run(t *testing.T, newModel func(testing.TB, ...Step) llm.Model) {
	t.Helper()
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(&suite{TB: t, newModel: newModel, patience: 20 * time.Second})
		})
	}
}

type check struct {
	name string
	run  func(s *suite)
}

type suite struct {
	testing.TB
	newModel func(testing.TB, ...Step) llm.Model
	patience time.Duration // how long anything may take that takes no time on an idle machine
}

func (s *suite) model(steps ...Step) llm.Model { return s.newModel(s.TB, steps...) }

// ask is a call with a task.
func ask() llm.Request { return llm.Request{Messages: []llm.Message{llm.UserText("a task")}} }

func (s *suite) generates(m llm.Model, r llm.Request) llm.Response {
	s.Helper()
	got, err := m.Generate(s.Context(), r)
	if err != nil {
		s.Fatalf("Generate: %v", err)
	}
	return got
}

func (s *suite) wantCode(err error, code string) *llm.Error {
	s.Helper()
	e, is := errors.AsType[*llm.Error](err)
	if !is || e.Code != code || e.Message == "" {
		s.Fatalf("got error %v (%+v), want an *llm.Error with code %s", err, e, code)
	}
	return e
}

func (s *suite) wantSame(what string, got, want any) {
	s.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// wantAborted checks how a call ended that was given up with errGivenUp.
func (s *suite) wantAborted(r llm.Response, err error) {
	s.Helper()
	s.wantCode(err, llm.CodeAborted)
	if !errors.Is(err, errGivenUp) {
		s.Errorf("the error %v does not wrap the context's cause", err)
	}
	if slices.ContainsFunc(r.Content, func(b llm.Block) bool { return b.Type == llm.ToolCallBlock }) {
		s.Errorf("the response has tool calls: %v", r.Content)
	}
}

// promptly fails if f takes long.
func (s *suite) promptly(f func()) {
	s.Helper()
	began := time.Now()
	f()
	if took := time.Since(began); took > s.patience {
		s.Errorf("took %v", took)
	}
}

var errGivenUp = errors.New("nobody waits any more")

func cancellable(s *suite) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(s.Context())
	s.Cleanup(func() { cancel(nil) })
	return ctx, func() { cancel(errGivenUp) }
}

func text(t string) llm.Block      { return llm.Block{Type: llm.TextBlock, Text: t} }
func reasoning(t string) llm.Block { return llm.Block{Type: llm.ReasoningBlock, Text: t} }

func call(name, arguments string) llm.Block {
	return llm.Block{Type: llm.ToolCallBlock, Name: name, Arguments: arguments}
}

func says(blocks ...llm.Block) Step { return Step{Content: blocks} }
