package agenttest

import (
	"context"
	"slices"
	"sync"

	"dsh/modules/llm"
)

// Model plays steps, one for each call. Its methods may be called concurrently.
type Model struct {
	mu       sync.Mutex
	steps    []Step
	requests []llm.Request
}

// Step is how a Model answers one call.
type Step func(ctx context.Context, r llm.Request) (llm.Response, error)

// NewModel returns a model that plays steps, and fails when they run out.
func NewModel(steps ...Step) *Model { return &Model{steps: steps} }

var _ llm.Model = (*Model)(nil)

var target = llm.Target{Provider: "test", Model: "steps"}

// Target implements llm.Model.
func (m *Model) Target(ctx context.Context, _ string) (llm.Target, error) {
	if ctx.Err() != nil {
		return llm.Target{}, aborted(ctx)
	}
	return target, nil
}

// Generate implements llm.Model.
func (m *Model) Generate(ctx context.Context, r llm.Request) (llm.Response, error) {
	m.mu.Lock()
	if len(m.steps) == 0 {
		m.mu.Unlock()
		return llm.Response{}, &llm.Error{Code: llm.CodeUnknown, Message: "the steps have run out"}
	}
	step := m.steps[0]
	m.steps = m.steps[1:]
	m.requests = append(m.requests, r)
	m.mu.Unlock()
	if ctx.Err() != nil {
		return llm.Response{}, aborted(ctx)
	}
	response, err := step(ctx, r)
	response.Target = target
	return response, err
}

// Requests returns the calls so far.
func (m *Model) Requests() []llm.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

func aborted(ctx context.Context) error {
	return &llm.Error{Code: llm.CodeAborted, Message: "aborted", Err: context.Cause(ctx)}
}

// Say answers with text.
func Say(text string) Step {
	return func(context.Context, llm.Request) (llm.Response, error) {
		return llm.Response{
			Content: []llm.Block{{Type: llm.TextBlock, Text: text}}, Finish: llm.FinishStop,
			Usage: &llm.Usage{InputTokens: 10, OutputTokens: 1},
		}, nil
	}
}

// Call is a tool call.
func Call(id, name, arguments string) llm.Block {
	return llm.Block{Type: llm.ToolCallBlock, CallID: id, Name: name, Arguments: arguments}
}

// Calls answers with tool calls.
func Calls(calls ...llm.Block) Step {
	return func(context.Context, llm.Request) (llm.Response, error) {
		return llm.Response{Content: calls, Finish: llm.FinishToolCalls}, nil
	}
}

// Fail fails.
func Fail(code string) Step {
	return func(context.Context, llm.Request) (llm.Response, error) {
		return llm.Response{}, &llm.Error{Code: code, Message: "as told"}
	}
}

// Hang says text, calls reached, and goes on for as long as the context lasts.
func Hang(text string, reached func()) Step {
	return func(ctx context.Context, r llm.Request) (llm.Response, error) {
		if r.Stream != nil && text != "" {
			r.Stream(llm.Delta{Type: llm.TextBlock, Text: text})
		}
		reached()
		<-ctx.Done()
		var said []llm.Block
		if text != "" {
			said = []llm.Block{{Type: llm.TextBlock, Text: text}}
		}
		return llm.Response{Content: said}, aborted(ctx)
	}
}
