package agenttest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"dsh/modules/agent"
	"dsh/modules/llm"
	"dsh/modules/session"
	"dsh/modules/tools"
)

func echo(_ context.Context, e tools.Execution) (string, error) { return "did " + e.CallID, nil }

func plainAnswer(t *testing.T, newAgent Maker) {
	model := NewModel(Say("42"))
	a, s := newAgent(t, Parts{model, Registry(t)}), Session(t)
	o := mustTurn(t.Context(), t, a, s, input("what is it?"))
	if o.Turn != 1 || o.Steps != 1 || o.Text != "42" || o.Reason.Kind != session.EndCompleted || o.Usage.InputTokens != 10 {
		t.Errorf("got %+v", o)
	}
	Traced(t, s, "turn/start", "step/start", "user/message user", "assistant/message", "step/end", "turn/end completed")
}

func oneCall(t *testing.T, newAgent Maker) {
	model := NewModel(Calls(Call("a", "tool", `{"x":1}`)), Say("done"))
	var got tools.Execution
	a, s := newAgent(t, Parts{model, Registry(t, Tool("tool", false, func(_ context.Context, e tools.Execution) (string, error) {
		got = e
		return "result", nil
	}))}), Session(t)
	o := mustTurn(t.Context(), t, a, s, input("go"))
	if o.Text != "done" || o.Steps != 2 {
		t.Errorf("got %+v", o)
	}
	Traced(t, s, "turn/start", "step/start", "user/message user", "assistant/message", "tool/call a", "tool/result a", "step/end",
		"step/start", "assistant/message", "step/end", "turn/end completed")
	if h := s.Header(); got.Session == nil || got.Session.ID != h.ID || got.Session.CWD != h.CWD || string(got.Arguments) != `{"x":1}` {
		t.Errorf("the tool got %+v", got)
	}
	first, second := model.Requests()[0], model.Requests()[1]
	if first.System != second.System || len(first.Tools) != 1 || len(second.Tools) != 1 {
		t.Error("the second call has another system prompt or other tools")
	}
	if d := gocmp.Diff([]string{"user: go", "assistant: ", "tool: result"}, texts(second.Messages)); d != "" {
		t.Errorf("the second call (want -, got +):\n%s", d)
	}
}

func nextTurn(t *testing.T, newAgent Maker) {
	model := NewModel(Say("one"), Say("two"))
	a, s := newAgent(t, Parts{model, Registry(t)}), Session(t)
	mustTurn(t.Context(), t, a, s, input("first"))
	if o := mustTurn(t.Context(), t, a, s, input("second")); o.Turn != 2 || o.Text != "two" {
		t.Errorf("got %+v", o)
	}
	if d := gocmp.Diff([]string{"user: first", "assistant: one", "user: second"}, texts(model.Requests()[1].Messages)); d != "" {
		t.Errorf("the second call (want -, got +):\n%s", d)
	}
}

// overlap has two calls that may overlap wait for each other, beside one that may not.
func overlap(t *testing.T, newAgent Maker) {
	var both sync.WaitGroup
	both.Add(2)
	var mu sync.Mutex
	running, most := 0, 0
	count := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		running += n
		most = max(most, running)
	}
	registry := Registry(t,
		Tool("together", true, func(ctx context.Context, _ tools.Execution) (string, error) {
			both.Done()
			met := make(chan struct{})
			go func() { both.Wait(); close(met) }()
			select {
			case <-met:
				return "met", nil
			case <-time.After(20 * time.Second):
				return "", errors.New("nobody came")
			}
		}),
		Tool("alone", false, func(context.Context, tools.Execution) (string, error) {
			count(1)
			defer count(-1)
			time.Sleep(time.Millisecond) // for another to show up
			return "alone", nil
		}))
	model := NewModel(Calls(Call("a", "together", ""), Call("b", "together", ""), Call("c", "alone", ""), Call("d", "alone", "")), Say("done"))
	a, s := newAgent(t, Parts{model, registry}), Session(t)
	mustTurn(t.Context(), t, a, s, input("go"))
	Traced(t, s, "turn/start", "step/start", "user/message user", "assistant/message",
		"tool/call a", "tool/call b", "tool/result a", "tool/result b", "tool/call c", "tool/result c", "tool/call d", "tool/result d",
		"step/end", "step/start", "assistant/message", "step/end", "turn/end completed")
	if most != 1 {
		t.Errorf("%d calls of a tool that allows no overlap ran at once", most)
	}
}

// order has the second of two overlapping calls end first.
func order(t *testing.T, newAgent Maker) {
	second := make(chan struct{})
	registry := Registry(t, Tool("tool", true, func(ctx context.Context, e tools.Execution) (string, error) {
		if e.CallID == "b" {
			close(second)
			return "b", nil
		}
		select {
		case <-second:
		case <-ctx.Done():
		case <-time.After(20 * time.Second):
		}
		return "a", nil
	}))
	model := NewModel(Calls(Call("a", "tool", ""), Call("b", "tool", "")), Say("done"))
	a, s := newAgent(t, Parts{model, registry}), Session(t)
	mustTurn(t.Context(), t, a, s, input("go"))
	if d := gocmp.Diff([]string{"user: go", "assistant: ", "assistant: ", "tool: a", "tool: b"}, texts(model.Requests()[1].Messages)); d != "" {
		t.Errorf("the second call (want -, got +):\n%s", d)
	}
}

func badCalls(t *testing.T, newAgent Maker) {
	model := NewModel(Calls(Call("a", "nonsense", "{}"), Call("b", "tool", "{not json"), Call("c", "tool", "")), Say("done"))
	a, s := newAgent(t, Parts{model, Registry(t, Tool("tool", false, echo))}), Session(t)
	mustTurn(t.Context(), t, a, s, input("go"))
	Traced(t, s, "turn/start", "step/start", "user/message user", "assistant/message",
		"tool/call a", "tool/result a UNKNOWN_TOOL", "tool/call b", "tool/result b INVALID_ARGS", "tool/call c", "tool/result c",
		"step/end", "step/start", "assistant/message", "step/end", "turn/end completed")
}

func failedModel(t *testing.T, newAgent Maker) {
	a, s := newAgent(t, Parts{NewModel(Fail(llm.CodeAuth)), Registry(t)}), Session(t)
	o := mustTurn(t.Context(), t, a, s, input("go"))
	if o.Reason.Kind != session.EndError || o.Reason.Error.Code != llm.CodeAuth {
		t.Errorf("got %+v", o.Reason)
	}
	Traced(t, s, "turn/start", "step/start", "user/message user", "step/end", "turn/end error AUTH")
}

func cutOff(t *testing.T, newAgent Maker) {
	step := func(context.Context, llm.Request) (llm.Response, error) {
		return llm.Response{Content: []llm.Block{{Type: llm.TextBlock, Text: "and then"}}, Finish: llm.FinishMaxTokens}, nil
	}
	a, s := newAgent(t, Parts{NewModel(step), Registry(t)}), Session(t)
	if o := mustTurn(t.Context(), t, a, s, input("go")); o.Text != "and then" {
		t.Errorf("got %+v", o)
	}
	Traced(t, s, "turn/start", "step/start", "user/message user", "assistant/message", "step/end", "turn/end max-tokens")
}

func retries(t *testing.T, newAgent Maker) {
	step := func(ctx context.Context, r llm.Request) (llm.Response, error) {
		for n := range 2 {
			failure := &llm.Error{Code: llm.CodeRateLimit, Message: "slow down"}
			if err := r.Retrying(llm.Retry{Attempt: n + 1, MaxRetries: 5, DelayMs: 7, Failure: failure}); err != nil {
				return llm.Response{}, err
			}
		}
		return Say("done")(ctx, r)
	}
	a, s := newAgent(t, Parts{NewModel(step), Registry(t)}), Session(t)
	mustTurn(t.Context(), t, a, s, input("go"))
	Traced(t, s, "turn/start", "step/start", "user/message user", "llm/retry", "llm/retry", "assistant/message", "step/end",
		"turn/end completed")
	var all []*session.LLMRetry
	for _, e := range s.Events() {
		if r, ok := e.Data.(*session.LLMRetry); ok {
			all = append(all, r)
		}
	}
	if len(all) != 2 || all[0].RetryID == "" || all[0].RetryID != all[1].RetryID || all[1].Retry != 2 || all[1].DelayMs != 7 || all[1].Provider != "test" {
		t.Errorf("got %+v", all)
	}
}

func cannotBegin(t *testing.T, newAgent Maker) {
	a, s := newAgent(t, Parts{NewModel(Say("no")), Registry(t)}), Session(t)
	invalid := func(what string, in agent.Input) {
		if _, err := a.Turn(t.Context(), s, in); !isInvalid(err) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	invalid("no message", agent.Input{})
	invalid("a message of another role", agent.Input{Messages: []llm.Message{llm.ToolResult("a", "b", false)}})
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if _, err := a.Turn(ctx, s, input("go")); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	if n := len(s.Events()); n != 0 {
		t.Errorf("%d events", n)
	}
}

func isInvalid(err error) bool {
	_, ok := errors.AsType[*agent.InvalidError](err)
	return ok
}

func oneAtATime(t *testing.T, newAgent Maker) {
	reached, goOn := make(chan struct{}), make(chan struct{})
	registry := Registry(t, Tool("tool", false, func(context.Context, tools.Execution) (string, error) {
		close(reached)
		<-goOn
		return "", nil
	}))
	a, s := newAgent(t, Parts{NewModel(Calls(Call("a", "tool", "")), Say("done"), Say("again")), registry}), Session(t)
	done := make(chan error, 1)
	go func() {
		_, err := a.Turn(t.Context(), s, input("go"))
		done <- err
	}()
	<-reached
	_, err := a.Turn(t.Context(), s, input("me too"))
	close(goOn)
	if !errors.Is(err, agent.ErrBusy) {
		t.Errorf("got %v", err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if o := mustTurn(t.Context(), t, a, s, input("me too")); o.Text != "again" {
		t.Errorf("got %+v", o)
	}
}

func observed(t *testing.T, newAgent Maker) {
	const took = 30 * time.Millisecond
	registry := Registry(t, Tool("tool", false, func(context.Context, tools.Execution) (string, error) {
		time.Sleep(took) // it is what is measured
		return "", nil
	}))
	a, s := newAgent(t, Parts{NewModel(Calls(Call("a", "tool", "")), Say("done")), registry}), Session(t)
	in := input("go")
	var seen []int64
	in.Observe = func(u agent.Update) {
		seen = append(seen, u.Event.Seq)
		if n := len(s.Events()); n <= int(u.Event.Seq) {
			t.Errorf("event %d of %d", u.Event.Seq, n)
		}
		if _, result := u.Event.Data.(*session.ToolResult); result && u.Took < took {
			t.Errorf("took %v", u.Took)
		}
	}
	mustTurn(t.Context(), t, a, s, in)
	if got, want := fmt.Sprint(seen), "[0 1 2 3 4 5 6 7 8 9 10]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
