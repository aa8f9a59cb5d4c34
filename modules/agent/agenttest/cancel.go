package agenttest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"dsh/modules/agent"
	"dsh/modules/session"
	"dsh/modules/tools"
)

// turn makes a turn that the test cancels, and fails the test when it does not end.
func turn(ctx context.Context, t testing.TB, a agent.Agent, s session.Session) agent.Outcome {
	t.Helper()
	type result struct {
		o   agent.Outcome
		err error
	}
	done := make(chan result, 1)
	go func() {
		o, err := a.Turn(ctx, s, input("go"))
		done <- result{o, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			t.Fatal(r.err)
		}
		return r.o
	case <-time.After(20 * time.Second):
		t.Fatal("the turn goes on after its end")
		return agent.Outcome{}
	}
}

func cancelledInStream(t *testing.T, newAgent Maker) {
	for name, c := range map[string]struct {
		said string
		want []string
	}{
		"with something said": {"I will", []string{"assistant/message interrupted"}},
		"with blanks said":    {" \n", nil},
		"with nothing said":   {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			a, s := newAgent(t, Parts{NewModel(Hang(c.said, cancel)), Registry(t)}), Session(t)
			if o := turn(ctx, t, a, s); o.Reason.Kind != session.EndAborted || o.Reason.Abort.Kind != "user" {
				t.Errorf("got %+v", o.Reason)
			}
			want := append([]string{"turn/start", "step/start", "user/message user"}, c.want...)
			Traced(t, s, append(want, "step/end", "turn/end aborted user")...)
		})
	}
}

// cancelledInTools cancels while two calls run that may overlap, and one waits for them.
func cancelledInTools(t *testing.T, newAgent Maker) {
	ctx, cancel := context.WithCancel(t.Context())
	var begun, ended atomic.Int32
	registry := Registry(t,
		Tool("together", true, func(ctx context.Context, e tools.Execution) (string, error) {
			if begun.Add(1) == 2 {
				cancel()
			}
			<-ctx.Done()
			time.Sleep(10 * time.Millisecond) // ending takes a moment, and is waited for
			ended.Add(1)
			return "", context.Cause(ctx)
		}),
		Tool("alone", false, func(context.Context, tools.Execution) (string, error) {
			t.Error("a call was made after the end")
			return "", nil
		}))
	model := NewModel(Calls(Call("a", "together", ""), Call("b", "together", ""), Call("c", "alone", "")), Say("more"))
	a, s := newAgent(t, Parts{model, registry}), Session(t)
	turn(ctx, t, a, s)
	if ended.Load() != 2 {
		t.Errorf("%d of 2 calls had ended when the turn had", ended.Load())
	}
	Traced(t, s, "turn/start", "step/start", "user/message user", "assistant/message",
		"tool/call a", "tool/call b", "tool/result a ABORTED", "tool/result b ABORTED",
		"tool/call c", "tool/result c ABORTED_BEFORE_DISPATCH", "step/end", "turn/end aborted user")
	if n := len(model.Requests()); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
	nodes := s.Surface()
	if last := nodes[len(nodes)-1].Message.Content[0]; !last.IsError || last.Text != "Error: tool call aborted before dispatch" {
		t.Errorf("got %+v", last)
	}
}

func cancelledByOthers(t *testing.T, newAgent Maker) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := session.Abort{Kind: "hook", Reason: "enough"}
	a, s := newAgent(t, Parts{NewModel(Hang("", func() { cancel(&agent.AbortError{Abort: why}) })), Registry(t)}), Session(t)
	if o := turn(ctx, t, a, s); o.Reason.Abort == nil || *o.Reason.Abort != why {
		t.Errorf("got %+v", o.Reason)
	}
}

func cancelledThenNext(t *testing.T, newAgent Maker) {
	ctx, cancel := context.WithCancel(t.Context())
	a, s := newAgent(t, Parts{NewModel(Hang("I will", cancel), Say("done")), Registry(t)}), Session(t)
	turn(ctx, t, a, s)
	if o := mustTurn(t.Context(), t, a, s, input("go on")); o.Turn != 2 || o.Text != "done" {
		t.Errorf("got %+v", o)
	}
}

// failing is a session whose log takes no more than a number of events.
type failing struct {
	session.Session
	left int
}

var errFull = errors.New("no space left")

func (f *failing) Append(d session.Data) (session.Event, error) {
	if f.left == 0 {
		return session.Event{}, errFull
	}
	f.left--
	return f.Session.Append(d)
}

func deadLog(t *testing.T, newAgent Maker) {
	for left := range 11 { // events that the turn has
		calls := 0
		registry := Registry(t, Tool("tool", true, func(context.Context, tools.Execution) (string, error) {
			calls++
			return "", nil
		}))
		model := NewModel(Calls(Call("a", "tool", "")), Say("done"))
		a, s := newAgent(t, Parts{model, registry}), Session(t)
		if _, err := a.Turn(t.Context(), &failing{s, left}, input("go")); !errors.Is(err, errFull) {
			t.Errorf("after %d events: got %v", left, err)
		}
		if n := len(model.Requests()); left < 3 && n > 0 || left < 8 && n > 1 {
			t.Errorf("after %d events: the model was asked %d times", left, n)
		}
		if left < 5 && calls > 0 {
			t.Errorf("after %d events: a tool was called that the log does not name", left)
		}
	}
}
