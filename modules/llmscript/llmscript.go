package llmscript

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"unicode/utf8"

	"go.uber.org/fx"

	"dsh/module"
	"dsh/modules/internal/llmretry"
	"dsh/modules/llm"
)

// Params is what New takes.
type Params struct {
	fx.In

	Config Config
}

// Result is what New gives.
type Result struct {
	fx.Out

	Model  llm.Model
	Runner module.Runner
}

// Module returns the module llm-script.
func Module() module.Module {
	return module.Define(module.Spec[Config]{
		Name:        "llm-script",
		Summary:     "a model that says what a file tells it to",
		Constructor: New,
	})
}

// New returns a model that reads p.Config.File when it starts.
func New(p Params) (Result, error) {
	if err := p.Config.Validate(); err != nil {
		return Result{}, err
	}
	s := &script{file: p.Config.File}
	return Result{Model: s, Runner: module.Runner{Start: func(context.Context) error { return s.load() }}}, nil
}

type script struct {
	file string

	mu    sync.Mutex
	steps []step
	next  int
	calls int // tool calls so far, for their ids
}

var _ llm.Model = (*script)(nil)

// maxRetries is the default of a model that is real.
const maxRetries = 5

// Target implements llm.Model. The model is called as the file is, unless the request has a name for it.
func (s *script) Target(ctx context.Context, model string) (llm.Target, error) {
	if ctx.Err() != nil {
		return llm.Target{}, context.Cause(ctx)
	}
	if model == "" {
		model = filepath.Base(s.file)
	}
	return llm.Target{Provider: "script", Model: model}, nil
}

// Generate implements llm.Model.
func (s *script) Generate(ctx context.Context, r llm.Request) (llm.Response, error) {
	if ctx.Err() != nil {
		return llm.Response{}, llm.Aborted(ctx)
	}
	if len(r.Messages) == 0 {
		return llm.Response{}, &llm.Error{Code: llm.CodeInvalidRequest, Message: "a request without messages"}
	}
	target, err := s.Target(ctx, r.Model)
	if err != nil {
		return llm.Response{}, llm.Aborted(ctx)
	}
	return llmretry.Do(ctx, maxRetries, r.Retrying, func() (llm.Response, error) {
		st, err := s.take()
		if err != nil {
			return llm.Response{}, err
		}
		return st.play(ctx, r, target)
	})
}

// take returns the next step, with ids for its tool calls.
func (s *script) take() (step, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == len(s.steps) {
		return step{}, &llm.Error{
			Code:    llm.CodeUnknown,
			Message: fmt.Sprintf("%s has %d steps, and the model is asked once more", s.file, len(s.steps)),
		}
	}
	st := s.steps[s.next]
	s.next++
	st.content = append([]llm.Block(nil), st.content...)
	for i := range st.content {
		if st.content[i].Type == llm.ToolCallBlock {
			s.calls++
			st.content[i].CallID = fmt.Sprintf("call-%d", s.calls)
		}
	}
	return st, nil
}

func (s step) play(ctx context.Context, r llm.Request, target llm.Target) (llm.Response, error) {
	if !llmretry.Wait(ctx, s.delay) {
		return llm.Response{}, llm.Aborted(ctx)
	}
	if err := s.checkExpected(r.Messages); err != nil {
		return llm.Response{}, err
	}
	if s.failure != nil {
		failure := *s.failure
		return llm.Response{}, &failure
	}
	said := llm.Response{Finish: llm.FinishStop, Target: target}
	for i, block := range s.content {
		if ctx.Err() != nil {
			return said.Interrupted(), llm.Aborted(ctx)
		}
		if block.Type == llm.ToolCallBlock {
			said.Finish = llm.FinishToolCalls
		}
		said.Content = append(said.Content, block)
		if !s.stream(ctx, r.Stream, i, &said.Content[i]) {
			return said.Interrupted(), llm.Aborted(ctx)
		}
	}
	if ctx.Err() != nil {
		return said.Interrupted(), llm.Aborted(ctx)
	}
	return said, nil
}

// stream says a block in pieces. When ctx ends it returns false, and the block is what had been said.
func (s step) stream(ctx context.Context, say func(llm.Delta), index int, block *llm.Block) bool {
	if say == nil {
		say = func(llm.Delta) {}
	}
	const piece = 16
	text := &block.Text
	d := llm.Delta{Index: index, Type: block.Type}
	if block.Type == llm.ToolCallBlock {
		text = &block.Arguments
		d.CallID, d.Name = block.CallID, block.Name
	}
	for said := 0; said < len(*text) || d.CallID != ""; {
		end := min(said+piece, len(*text))
		for end < len(*text) && !utf8.RuneStart((*text)[end]) {
			end++
		}
		d.Text = (*text)[said:end]
		say(d)
		d.CallID, d.Name = "", ""
		said = end
		if ctx.Err() != nil || s.pause > 0 && !llmretry.Wait(ctx, s.pause) {
			*text = (*text)[:said]
			return false
		}
	}
	return true
}

func (s step) checkExpected(messages []llm.Message) error {
	if s.lastToolResult == nil {
		return nil
	}
	last, found := "", false
	for _, m := range messages {
		for _, b := range m.Content {
			if b.Type == llm.ToolResultBlock {
				last, found = b.Text, true
			}
		}
	}
	var err error
	switch {
	case !found:
		err = errors.New("no tool result was shown")
	case !s.lastToolResult.MatchString(last):
		err = fmt.Errorf("the last tool result is %.200q", last)
	default:
		return nil
	}
	return &llm.Error{
		Code: llm.CodeUnknown, Err: err,
		Message: fmt.Sprintf("%s: expected a tool result that matches %q, but %v", s.where, s.lastToolResult, err),
	}
}
