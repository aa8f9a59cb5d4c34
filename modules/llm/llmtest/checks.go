package llmtest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"dsh/modules/llm"
	"dsh/modules/tools"
)

var checks = []check{
	{"a response is not what the model said", func(s *suite) {
		odd := "a\n\"\\ \u2028 \U0001F600 <&> data: [DONE]"
		r := s.generates(s.model(says(reasoning("hm "+odd), text(odd))), ask())
		s.wantSame("Content", r.Content, []llm.Block{reasoning("hm " + odd), text(odd)})
		if r.Finish != llm.FinishStop {
			s.Errorf("Finish is %q, want %q", r.Finish, llm.FinishStop)
		}
		if r.Target.Provider == "" || r.Target.Model == "" {
			s.Errorf("Target is %+v", r.Target)
		}
	}},
	{"a tool call is lost or changed", func(s *suite) {
		calls := []llm.Block{
			call("bash", `{"command":"echo \"a\"","description":"\u00e9"}`), call("bash", `{"command": tru`), call("nobody", ""),
			call("write", `{"text":"`+strings.Repeat("é", 100_000)+`"}`),
		}
		m := s.model(says(append([]llm.Block{text("now")}, calls...)...), says(calls[0]))
		r := s.generates(m, ask())
		seen := map[string]bool{}
		for i, got := range r.Content {
			if i == 0 {
				continue
			}
			if got.CallID == "" || seen[got.CallID] {
				s.Errorf("tool call %d has the id %q", i, got.CallID)
			}
			seen[got.CallID] = true
			if i > len(calls) || got.Name != calls[i-1].Name || got.Arguments != calls[i-1].Arguments {
				s.Errorf("tool call %d is %s %.80s", i, got.Name, got.Arguments)
			}
		}
		if len(seen) != len(calls) || r.Finish != llm.FinishToolCalls {
			s.Errorf("%d tool calls and finish %q", len(seen), r.Finish)
		}
		if again := s.generates(m, ask()); len(again.Content) != 1 || again.Finish != llm.FinishToolCalls {
			s.Errorf("a response of a tool call alone is %+v", again)
		}
	}},
	{"the pieces are not the whole", func(s *suite) {
		m := s.model(says(reasoning("let me see"), text(strings.Repeat("word ", 50)), call("bash", `{"command":"true"}`), call("bash", "")))
		var joined []llm.Block
		r := ask()
		r.Stream = func(d llm.Delta) {
			if d.Index == len(joined) {
				joined = append(joined, llm.Block{Type: d.Type})
			}
			if d.Index < 0 || d.Index >= len(joined) || joined[d.Index].Type != d.Type {
				s.Errorf("a piece of block %d, which is not the next", d.Index)
				return
			}
			b := &joined[d.Index]
			b.CallID += d.CallID
			b.Name += d.Name
			if d.Type == llm.ToolCallBlock {
				b.Arguments += d.Text
			} else {
				b.Text += d.Text
			}
		}
		s.wantSame("the pieces, joined", joined, s.generates(m, r).Content)
		if len(joined) != 4 {
			s.Errorf("%d blocks, want 4", len(joined))
		}
	}},
	{"a failure that does not pass is tried again, or has another code", func(s *suite) {
		for _, code := range []string{llm.CodeAuth, llm.CodeInvalidRequest, llm.CodeContextWindow, llm.CodeQuota} {
			m := s.model(Step{Failure: &llm.Error{Code: code, Message: "no"}}, says(text("the next")))
			r := ask()
			r.Retrying = func(llm.Retry) error {
				s.Errorf("%s is tried again", code)
				return errGivenUp
			}
			got, err := m.Generate(s.Context(), r)
			s.wantCode(err, code)
			if len(got.Content) > 0 {
				s.Errorf("%s comes with %v", code, got.Content)
			}
			if next := s.generates(m, ask()); len(next.Content) != 1 || next.Content[0].Text != "the next" {
				s.Errorf("after %s the next call says %v", code, next.Content)
			}
		}
	}},
	{"a failure that passes is not tried again, or nobody is told", func(s *suite) {
		m := s.model(
			Step{Failure: &llm.Error{Code: llm.CodeRateLimit, Message: "slowly", RetryAfterMs: 1000}},
			Step{Failure: &llm.Error{Code: llm.CodeServer, Message: "oops"}}, says(text("at last")))
		var told []llm.Retry
		var at []time.Time
		r := ask()
		r.Retrying = func(retry llm.Retry) error {
			told, at = append(told, retry), append(at, time.Now())
			return nil
		}
		if got := s.generates(m, r); len(got.Content) != 1 || got.Content[0].Text != "at last" {
			s.Errorf("the response is %v", got.Content)
		}
		if len(told) != 2 {
			s.Fatalf("told about %d retries, want 2", len(told))
		}
		for i, code := range []string{llm.CodeRateLimit, llm.CodeServer} {
			got := told[i]
			if got.Attempt != i+1 || got.MaxRetries < 3 || got.DelayMs <= 0 || got.Failure == nil || got.Failure.Code != code {
				s.Errorf("retry %d is %+v with %+v", i+1, got, got.Failure)
			}
		}
		if told[0].DelayMs != 1000 {
			s.Errorf("the wait is %d ms, and the provider asked for 1000", told[0].DelayMs)
		}
		if waited := at[1].Sub(at[0]); waited < 900*time.Millisecond {
			s.Errorf("waited %v of the second that was told", waited)
		}
	}},
	{"whoever cannot be told about a retry is overheard", func(s *suite) {
		m := s.model(Step{Failure: &llm.Error{Code: llm.CodeServer, Message: "oops"}}, says(text("the next")))
		r := ask()
		broken := errors.New("the log is full")
		r.Retrying = func(llm.Retry) error { return broken }
		if _, err := m.Generate(s.Context(), r); !errors.Is(err, broken) {
			s.Errorf("got %v, want %v", err, broken)
		}
		if got := s.generates(m, ask()); got.Content[0].Text != "the next" {
			s.Errorf("the next call says %v", got.Content)
		}
	}},
	{"a call that comes cancelled is made", func(s *suite) {
		m := s.model(says(text("one")))
		ctx, giveUp := cancellable(s)
		giveUp()
		s.wantAborted(m.Generate(ctx, ask()))
		if got := s.generates(m, ask()); got.Content[0].Text != "one" {
			s.Errorf("the next call says %v", got.Content)
		}
		if _, err := m.Target(ctx, ""); err == nil {
			s.Error("Target of a context that has ended: no error")
		}
	}},
	{"a silent model is waited for after the end", func(s *suite) {
		ctx, giveUp := cancellable(s)
		timer := time.AfterFunc(50*time.Millisecond, giveUp)
		defer timer.Stop()
		s.promptly(func() { s.wantAborted(s.model(Step{Silent: true}).Generate(ctx, ask())) })
	}},
	{"what had been said is lost with the call", func(s *suite) {
		ctx, giveUp := cancellable(s)
		m := s.model(says(reasoning("hm"), text(strings.Repeat("long ", 100)), call("bash", "{}")))
		var said string
		r := ask()
		r.Stream = func(d llm.Delta) {
			if d.Type == llm.TextBlock {
				said += d.Text
				giveUp()
			}
		}
		got, err := m.Generate(ctx, r)
		s.wantAborted(got, err)
		if len(got.Content) != 2 || got.Content[0].Text != "hm" || got.Content[1].Text != said || said == "" {
			s.Errorf("the response is %v, and %q was streamed", got.Content, said)
		}
	}},
	{"a wait outlasts its call", func(s *suite) {
		m := s.model(Step{Failure: &llm.Error{Code: llm.CodeRateLimit, Message: "slowly", RetryAfterMs: 50_000}}, says(text("late")))
		ctx, giveUp := cancellable(s)
		r := ask()
		r.Retrying = func(llm.Retry) error {
			time.AfterFunc(20*time.Millisecond, giveUp)
			return nil
		}
		defer time.AfterFunc(s.patience/4, giveUp).Stop() // if nobody is told
		s.promptly(func() {
			got, err := m.Generate(ctx, r)
			s.wantAborted(got, err)
			if len(got.Content) > 0 {
				s.Errorf("the response is %v", got.Content)
			}
		})
	}},
	{"concurrent calls get each other's responses", func(s *suite) {
		const n = 8
		var steps []Step
		for i := range n {
			steps = append(steps, says(text(fmt.Sprintf("response %d", i)), call("bash", "{}")))
		}
		m := s.model(steps...)
		var mu sync.Mutex
		seen := map[string]int{}
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				got, err := m.Generate(s.Context(), ask())
				mu.Lock()
				defer mu.Unlock()
				if err != nil || len(got.Content) != 2 {
					s.Errorf("got %v, %v", got.Content, err)
					return
				}
				seen[got.Content[0].Text]++
			})
		}
		wg.Wait()
		if len(seen) != n {
			s.Errorf("the responses were %v", seen)
		}
	}},
	{"a request is changed", func(s *suite) {
		make := func() llm.Request {
			return llm.Request{
				System: "be brief", Model: "another",
				Messages: []llm.Message{
					{ID: "1", Role: llm.RoleUser, Content: []llm.Block{text("a task")}},
					{ID: "2", Role: llm.RoleAssistant, Content: []llm.Block{reasoning("r"), {
						Type: llm.ToolCallBlock, CallID: "c", Name: "bash", Arguments: "{}",
					}}},
					{ID: "3", Role: llm.RoleTool, Content: []llm.Block{{Type: llm.ToolResultBlock, CallID: "c"}}},
				},
				Tools: []llm.Tool{{Name: "bash", Parameters: &tools.Schema{Type: "object"}}},
			}
		}
		r := make()
		m := s.model(says(text("done")))
		got := s.generates(m, r)
		s.wantSame("the request", r, make())
		target, err := m.Target(s.Context(), "another")
		if err != nil || got.Target != target || target.Model != "another" {
			s.Errorf("the response is of %+v; Target says %+v, %v", got.Target, target, err)
		}
	}},
	{"an empty conversation is sent", func(s *suite) {
		_, err := s.model(says(text("x"))).Generate(s.Context(), llm.Request{})
		s.wantCode(err, llm.CodeInvalidRequest)
	}},
}
