package agentloop_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"dsh/modules/agent"
	"dsh/modules/agent/agenttest"
	"dsh/modules/agentloop"
	"dsh/modules/jobs"
	"dsh/modules/llm"
	"dsh/modules/session"
	"dsh/modules/systemprompt"
	"dsh/modules/tools"
)

// newAgent returns an agent; change may alter what it is made of.
func newAgent(t testing.TB, model llm.Model, registry tools.Registry, change func(*agentloop.Params)) agentloop.Result {
	t.Helper()
	prompt, err := systemprompt.New(systemprompt.Params{Config: systemprompt.Config{IncludeRuntimeContext: true}})
	if err != nil {
		t.Fatal(err)
	}
	p := agentloop.Params{
		Config: agentloop.DefaultConfig(), Model: model, Tools: registry, Prompt: prompt.Prompt, Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&p)
	}
	r, err := agentloop.New(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Run.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return r
}

func input(text string) agent.Input { return agent.Input{Messages: []llm.Message{llm.UserText(text)}} }

func mustTurn(t testing.TB, a agent.Agent, s session.Session, text string) agent.Outcome {
	t.Helper()
	o, err := a.Turn(t.Context(), s, input(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestTheAgentKeepsItsPromises(t *testing.T) {
	agenttest.Run(t, func(t testing.TB, p agenttest.Parts) agent.Agent { return newAgent(t, p.Model, p.Tools, nil).Agent })
}

func TestAModelThatNeverEndsIsEndedByTheBudgetOfSteps(t *testing.T) {
	t.Parallel()
	call := agenttest.Calls(agenttest.Call("a", "tool", ""))
	model := agenttest.NewModel(call, call, call, call)
	registry := agenttest.Registry(t, agenttest.Tool("tool", false, func(context.Context, tools.Execution) (string, error) { return "", nil }))
	a, s := newAgent(t, model, registry, func(p *agentloop.Params) { p.Config.MaxSteps = 3 }), agenttest.Session(t)
	o := mustTurn(t, a.Agent, s, "go")
	if o.Steps != 3 || o.Reason.Error == nil || o.Reason.Error.Code != agent.CodeMaxSteps || !strings.Contains(o.Reason.Error.Message, "maxSteps") {
		t.Errorf("got %+v", o)
	}
	if n := len(model.Requests()); n != 3 {
		t.Errorf("the model was asked %d times", n)
	}
}

func TestATurnThatTakesTooLongIsEnded(t *testing.T) {
	t.Parallel()
	model := agenttest.NewModel(agenttest.Hang("I will", func() {}))
	a, s := newAgent(t, model, agenttest.Registry(t), func(p *agentloop.Params) { p.Config.MaxTurnMs = 20 }), agenttest.Session(t)
	o := mustTurn(t, a.Agent, s, "go")
	if o.Reason.Abort == nil || o.Reason.Abort.Kind != "timeout" || !strings.Contains(o.Reason.Abort.Reason, "20 ms") {
		t.Errorf("got %+v", o.Reason)
	}
}

func TestAStopEndsOpenTurnsAndTakesNoMore(t *testing.T) {
	t.Parallel()
	reached := make(chan struct{})
	a, s := newAgent(t, agenttest.NewModel(agenttest.Hang("", func() { close(reached) })), agenttest.Registry(t), nil), agenttest.Session(t)
	done := make(chan agent.Outcome, 1)
	go func() {
		o, _ := a.Agent.Turn(t.Context(), s, input("go"))
		done <- o
	}()
	<-reached
	if err := a.Run.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	select {
	case o := <-done:
		if o.Reason.Abort == nil || o.Reason.Abort.Kind != "disposed" {
			t.Errorf("got %+v", o.Reason)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the turn goes on")
	}
	if _, err := a.Agent.Turn(t.Context(), s, input("go")); err == nil {
		t.Error("a turn began after the stop")
	}
}

func TestAPromptThatFailsEndsTheTurnAndKeepsItsMessage(t *testing.T) {
	t.Parallel()
	var prompt agent.Prompt
	a := newAgent(t, agenttest.NewModel(), agenttest.Registry(t), func(p *agentloop.Params) { prompt = p.Prompt })
	if _, err := prompt.Section(agent.Section{ID: "x", Text: func(context.Context, agent.View) (string, error) {
		return "", errors.New("broken")
	}}); err != nil {
		t.Fatal(err)
	}
	s := agenttest.Session(t)
	mustTurn(t, a.Agent, s, "go")
	agenttest.Traced(t, s, "turn/start", "step/start", "user/message user", "step/end", "turn/end error PROMPT")
}

func TestTheRuntimeContextIsToldAgainWhenItChanges(t *testing.T) {
	t.Parallel()
	text := "policy one"
	call := func(next string) agenttest.Step {
		return func(ctx context.Context, r llm.Request) (llm.Response, error) {
			text = next
			return agenttest.Calls(agenttest.Call("a", "tool", ""))(ctx, r)
		}
	}
	model := agenttest.NewModel(call("policy one"), call("policy two"), call(""), agenttest.Say("done"))
	registry := agenttest.Registry(t, agenttest.Tool("tool", false, func(context.Context, tools.Execution) (string, error) { return "", nil }))
	a := newAgent(t, model, registry, func(p *agentloop.Params) {
		_, err := p.Prompt.Context(agent.Section{ID: "x", Text: func(context.Context, agent.View) (string, error) { return text, nil }})
		if err != nil {
			t.Fatal(err)
		}
	})
	s := agenttest.Session(t)
	mustTurn(t, a.Agent, s, "go")
	var got []string
	for _, m := range s.Messages() {
		if m.Source.Form == "snapshot" {
			got = append(got, m.Text())
		}
	}
	head := "Current runtime context. This snapshot supersedes earlier runtime-context snapshots.\n\n"
	want := []string{head + "policy one", head + "policy two", "Current runtime context: none. Earlier runtime-context snapshots no longer apply."}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got %q, want %q", got, want)
	}
}

// notifying has a notice for the session at the first and the second look.
type notifying struct {
	jobs.Registry
	looks int
}

func (n *notifying) TakeNotices(string) []jobs.Notice {
	n.looks++
	if n.looks > 2 {
		return nil
	}
	return []jobs.Notice{{Job: jobs.Snapshot{ID: "bash-1", Kind: "bash", Label: "make", Status: jobs.Completed}}}
}

func TestNoticesOfJobsReachTheNextStepAndDelayTheEnd(t *testing.T) {
	t.Parallel()
	model := agenttest.NewModel(agenttest.Calls(agenttest.Call("a", "tool", "")), agenttest.Say("early"), agenttest.Say("done"))
	registry := agenttest.Registry(t, agenttest.Tool("tool", false, func(context.Context, tools.Execution) (string, error) { return "", nil }))
	a, s := newAgent(t, model, registry, func(p *agentloop.Params) { p.Jobs = &notifying{} }), agenttest.Session(t)
	if o := mustTurn(t, a.Agent, s, "go"); o.Text != "done" {
		t.Errorf("got %+v", o)
	}
	agenttest.Traced(t, s, "turn/start", "step/start", "user/message user", "assistant/message", "tool/call a", "tool/result a", "step/end",
		"step/start", "user/message notice", "assistant/message", "step/end",
		"step/start", "user/message notice", "assistant/message", "step/end", "turn/end completed")
}
