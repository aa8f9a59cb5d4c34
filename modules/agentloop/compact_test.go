package agentloop_test

import (
	"context"
	"strings"
	"testing"

	"dsh/modules/agent"
	"dsh/modules/agent/agenttest"
	"dsh/modules/agentloop"
	"dsh/modules/llm"
	"dsh/modules/tools"
)

// small makes the context window so small that a few long messages fill it.
func small(p *agentloop.Params) { p.Config.ContextWindow = 2000 }

func long(word string) string { return word + " " + strings.Repeat("word ", 800) }

func TestAFullConversationIsSummarisedBeforeAStep(t *testing.T) {
	t.Parallel()
	model := agenttest.NewModel(agenttest.Say("one"), agenttest.Say("two"), agenttest.Say("# Checkpoint"), agenttest.Say("three"))
	a := newAgent(t, model, agenttest.Registry(t), func(p *agentloop.Params) {
		small(p)
		if _, err := p.Prompt.Context(agent.Plain("x", 0, "policy")); err != nil {
			t.Fatal(err)
		}
	})
	s := agenttest.Session(t)
	for _, text := range []string{long("first"), long("second"), "third"} {
		mustTurn(t, a.Agent, s, text)
	}
	agenttest.Traced(t, s,
		"turn/start", "step/start", "user/message user", "user/message snapshot", "assistant/message", "step/end", "turn/end completed",
		"turn/start", "step/start", "user/message user", "assistant/message", "step/end", "turn/end completed",
		"turn/start", "compaction/start", "compaction/summary", "compaction/end",
		"step/start", "user/message user", "user/message snapshot", "assistant/message", "step/end", "turn/end completed")

	asked := model.Requests()[2]
	if last := asked.Messages[len(asked.Messages)-1].Text(); !strings.Contains(last, "## Primary Request and Intent") || asked.MaxTokens != 8192 {
		t.Errorf("the summary was asked for with %d tokens and %q", asked.MaxTokens, last)
	}
	var got []string
	for _, m := range model.Requests()[3].Messages {
		got = append(got, string(m.Role)+" "+m.Source.Form)
	}
	if want := "user summary, assistant , user , user snapshot"; strings.Join(got, ", ") != want {
		t.Errorf("after it the model was sent %s, want %s", strings.Join(got, ", "), want)
	}
	if first := s.Messages()[0].Text(); !strings.Contains(first, "<compacted-summary>\n# Checkpoint\n</compacted-summary>") {
		t.Errorf("got %q", first)
	}
}

func TestASummaryThatCannotBeHadDoesNotEndTheTurn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		step agenttest.Step
		code string
	}{
		"the model fails":        {agenttest.Fail(llm.CodeServer), llm.CodeServer},
		"nothing is said":        {agenttest.Say(" "), llm.CodeUnknown},
		"it saves nothing":       {agenttest.Say(long("long") + long("longer") + long("longest")), llm.CodeUnknown},
		"it is cut off":          {cutOff, llm.CodeUnknown},
		"it calls tools instead": {agenttest.Calls(agenttest.Call("a", "tool", "")), llm.CodeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := agenttest.NewModel(agenttest.Say("one"), agenttest.Say("two"), c.step, agenttest.Say("three"))
			a, s := newAgent(t, model, agenttest.Registry(t), small), agenttest.Session(t)
			mustTurn(t, a.Agent, s, long("first"))
			mustTurn(t, a.Agent, s, long("second"))
			if o := mustTurn(t, a.Agent, s, "third"); o.Text != "three" {
				t.Errorf("got %+v", o)
			}
			trace := agenttest.Trace(s)
			if got, want := strings.Join(trace[12:15], ", "), "turn/start, compaction/start, compaction/end "+c.code; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func cutOff(context.Context, llm.Request) (llm.Response, error) {
	return llm.Response{Content: []llm.Block{{Type: llm.TextBlock, Text: "# Ch"}}, Finish: llm.FinishMaxTokens}, nil
}

func TestAConversationThatTheModelRefusesIsSummarisedOnce(t *testing.T) {
	t.Parallel()
	registry := agenttest.Registry(t, agenttest.Tool("tool", true, func(context.Context, tools.Execution) (string, error) {
		return strings.Repeat("result ", 3000), nil
	}))
	calls := agenttest.Calls(agenttest.Call("a", "tool", ""), agenttest.Call("b", "tool", ""))
	model := agenttest.NewModel(calls, agenttest.Fail(llm.CodeContextWindow), agenttest.Say("# Checkpoint"), agenttest.Say("done"))
	a, s := newAgent(t, model, registry, nil), agenttest.Session(t)
	if o := mustTurn(t, a.Agent, s, "go"); o.Text != "done" {
		t.Errorf("got %+v", o)
	}
	agenttest.Traced(t, s, "turn/start", "step/start", "user/message user", "assistant/message", "tool/call a", "tool/call b",
		"tool/result a", "tool/result b", "step/end",
		"step/start", "compaction/start", "compaction/summary", "compaction/end", "assistant/message", "step/end", "turn/end completed")
	for _, m := range model.Requests()[2].Messages {
		if n := len(m.Content[0].Text); n > 8192 {
			t.Errorf("the summary was asked for with a result of %d bytes", n)
		}
	}
}

func TestACancelWhileASummaryIsWrittenEndsTheTurnAndKeepsItsMessage(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	model := agenttest.NewModel(agenttest.Say("one"), agenttest.Say("two"), agenttest.Hang("# Ch", cancel))
	a, s := newAgent(t, model, agenttest.Registry(t), small), agenttest.Session(t)
	mustTurn(t, a.Agent, s, long("first"))
	mustTurn(t, a.Agent, s, long("second"))
	if _, err := a.Agent.Turn(ctx, s, input("third")); err != nil {
		t.Fatal(err)
	}
	trace := agenttest.Trace(s)
	want := "turn/start, compaction/start, compaction/end ABORTED, step/start, user/message user, step/end, turn/end aborted user"
	if got := strings.Join(trace[12:], ", "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
