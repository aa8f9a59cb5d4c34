package headless_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"dsh/compose"
	"dsh/composetest"
	"dsh/module"
	"dsh/modules/agent"
	"dsh/modules/agent/agenttest"
	"dsh/modules/llm"
	"dsh/modules/session"
	"dsh/modules/tools"
)

// scene is a session of a composition whose model plays a script.
type scene struct {
	t testing.TB
	r *compose.Running
	s session.Session
}

func open(t testing.TB, script string, more ...composetest.Option) *scene {
	t.Helper()
	r := start(t, script, more...)
	s, err := composetest.Value[session.Store](t, r).Create(t.Context(), session.New{CWD: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &scene{t: t, r: r, s: s}
}

func (s *scene) turn(ctx context.Context, text string, observe func(agent.Update)) agent.Outcome {
	s.t.Helper()
	o, err := composetest.Value[agent.Agent](s.t, s.r).Turn(ctx, s.s, agent.Input{
		Messages: []llm.Message{llm.UserText(text)}, Observe: observe,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return o
}

// The beginning of every first turn: what the user said, and what the rows have to say.
var begun = []string{"turn/start", "step/start", "user/message user", "user/message snapshot"}

func traced(s *scene, rest ...string) {
	s.t.Helper()
	agenttest.Traced(s.t, s.s, append(begun[:len(begun):len(begun)], rest...)...)
}

func TestTraceOfAPlainAnswer(t *testing.T) {
	s := open(t, "- text: hello\n")
	s.turn(t.Context(), "hi", nil)
	traced(s, "assistant/message", "step/end", "turn/end completed")
}

func TestTraceOfOneCall(t *testing.T) {
	s := open(t, oneCall)
	s.turn(t.Context(), "say hi", nil)
	traced(s, "assistant/message", "tool/call call-1", "tool/result call-1", "step/end",
		"step/start", "assistant/message", "step/end", "turn/end completed")
}

func TestTraceOfACancelInTheStream(t *testing.T) {
	s := open(t, "- text: '"+strings.Repeat("word by word ", 1000)+"'\n  pauseMs: 20\n")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.turn(ctx, "go", func(u agent.Update) {
		if u.Event.Data.Type() == session.TypeUserMessage {
			time.AfterFunc(300*time.Millisecond, cancel)
		}
	})
	traced(s, "assistant/message interrupted", "step/end", "turn/end aborted user")
	for _, e := range s.s.Events() {
		if m, ok := e.Data.(*session.AssistantMessage); ok && !strings.HasPrefix(m.Message.Text(), "word by word ") {
			t.Errorf("the log keeps %q of what was said", m.Message.Text())
		}
	}
}

// patience is a tool that waits for the end of its context. Its calls may overlap.
func patience(running chan<- string) module.Module {
	return stand("patience", func(registry tools.Registry) module.Runner {
		var undo func()
		return module.Runner{
			Start: func(context.Context) (err error) {
				undo, err = registry.Register(tools.Definition{
					Name: "wait", Description: "waits", Parameters: &tools.Schema{Type: "object"}, Output: &tools.Schema{Type: "string"},
					Parallel: func(json.RawMessage) bool { return true },
					Execute: func(ctx context.Context, e tools.Execution) (any, error) {
						running <- e.CallID
						<-ctx.Done()
						return "waited", nil
					},
					Render: func(json.RawMessage) (string, error) { return "waited", nil },
				})
				return err
			},
			Stop: func(context.Context) error { undo(); return nil },
		}
	})
}

func TestTraceOfACancelWhileTwoToolsRunAndOneWaits(t *testing.T) {
	running := make(chan string, 3)
	s := open(t, "- tools: [{name: wait, arguments: {}}, {name: wait, arguments: {}}, {name: wait, arguments: {}}]\n- text: never said\n",
		composetest.With(module.Bundle{
			Name: "patience", Modules: []module.Module{patience(running)}, Patch: []byte("- insert: [{id: patience, name: patience}]"),
		}),
		composetest.Set("agent-loop.maxParallelToolCalls=2"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-running
		<-running
		cancel()
	}()
	s.turn(ctx, "go", nil)
	traced(s, "assistant/message", "tool/call call-1", "tool/call call-2",
		"tool/result call-1 ABORTED", "tool/result call-2 ABORTED",
		"tool/call call-3", "tool/result call-3 ABORTED_BEFORE_DISPATCH", "step/end", "turn/end aborted user")
	var said []string
	for _, e := range s.s.Events() {
		if r, ok := e.Data.(*session.ToolResult); ok {
			said = append(said, r.Message.Content[0].Text)
		}
	}
	want := "Error: tool call aborted\nError: tool call aborted\nError: tool call aborted before dispatch"
	if got := strings.Join(said, "\n"); got != want {
		t.Errorf("the model reads %q, want %q", got, want)
	}
}

const slower = "- error: {code: RATE_LIMIT, message: slower, retryAfterMs: 1}\n"

func TestTraceOfARateLimit(t *testing.T) {
	s := open(t, slower+slower+"- text: at last\n")
	s.turn(t.Context(), "go", nil)
	traced(s, "llm/retry", "llm/retry", "assistant/message", "step/end", "turn/end completed")
	var ids []string
	for _, e := range s.s.Events() {
		if r, ok := e.Data.(*session.LLMRetry); ok {
			if ids = append(ids, r.RetryID); r.Retry != len(ids) || r.DelayMs != 1 || r.Failure.Code != llm.CodeRateLimit {
				t.Errorf("got %+v", r)
			}
		}
	}
	if ids[0] == "" || ids[0] != ids[1] {
		t.Errorf("the retries of one call are called %q", ids)
	}

	s = open(t, strings.Repeat(slower, 6))
	s.turn(t.Context(), "go", nil)
	traced(s, "llm/retry", "llm/retry", "llm/retry", "llm/retry", "llm/retry", "step/end", "turn/end error RATE_LIMIT")
}

func TestTraceOfAnEscalation(t *testing.T) {
	const script = `
- tools: [{name: bash, arguments: {command: "touch made", description: test, sandbox_permissions: workspace-write, justification: to make it}}]
- text: I may not.
`
	// That of one that is allowed needs a person: a script of the program's has one.
	s := open(t, script, composetest.Set("sandbox-policy.mode=read-only"), composetest.Set("approval.policy=never"))
	s.turn(t.Context(), "make it", nil)
	traced(s, "assistant/message", "tool/call call-1", "approval/asked", "approval/decided", "tool/result call-1 DENIED", "step/end",
		"step/start", "assistant/message", "step/end", "turn/end completed")

	s = open(t, script, composetest.Set("sandbox-policy.mode=read-only"), composetest.Patch("- {id: approval, disabled: true}"))
	s.turn(t.Context(), "make it", nil)
	traced(s, "assistant/message", "tool/call call-1", "tool/result call-1 DENIED", "step/end",
		"step/start", "assistant/message", "step/end", "turn/end completed")
}

func TestTraceOfACrashDuringACall(t *testing.T) {
	s := open(t, "- text: going on\n")
	call := agenttest.Call("call-1", "bash", `{"command":"true","description":"test"}`)
	for _, d := range []session.Data{
		&session.TurnStart{Turn: 1}, &session.StepStart{Turn: 1, Step: 1}, &session.UserMessage{Message: llm.UserText("go")},
		&session.AssistantMessage{Turn: 1, Step: 1, Message: llm.Message{ID: "m-1", Role: llm.RoleAssistant, Content: []llm.Block{call}}},
		&session.ToolCall{Turn: 1, Step: 1, CallID: "call-1", Name: "bash", Arguments: call.Arguments},
	} {
		if _, err := s.s.Append(d); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.s.Close(); err != nil {
		t.Fatal(err)
	}
	report := run(t.Context(), t, s.r, agent.Task{Text: "go on", Resume: s.s.Header().ID})
	again, err := composetest.Value[session.Store](t, s.r).Open(t.Context(), report.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	agenttest.Traced(t, again,
		"turn/start", "step/start", "user/message user", "assistant/message", "tool/call call-1",
		"tool/result call-1 TOOL_OUTCOME_UNKNOWN", "step/end", "turn/end interrupted",
		"turn/start", "step/start", "user/message user", "user/message snapshot", "assistant/message", "step/end", "turn/end completed")
}

func TestTraceOfASummary(t *testing.T) {
	long := strings.Repeat("word ", 800)
	s := open(t, "- text: one\n- text: two\n- text: '# Checkpoint'\n- text: three\n", composetest.Set("agent-loop.contextWindow=3500"))
	for _, text := range []string{long, long, "third"} {
		s.turn(t.Context(), text, nil)
	}
	if got := strings.Join(agenttest.Trace(s.s), ", "); !strings.Contains(got,
		"turn/start, compaction/start, compaction/summary, compaction/end, step/start, user/message user") {
		t.Errorf("got %s", got)
	}
}
