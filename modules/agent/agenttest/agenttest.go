package agenttest

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"dsh/modules/agent"
	"dsh/modules/llm"
	"dsh/modules/session"
	"dsh/modules/sessionjsonl"
	"dsh/modules/tools"
	"dsh/modules/toolslocal"
)

// Parts are what an agent works with.
type Parts struct {
	Model llm.Model
	Tools tools.Registry
}

// Maker returns an agent of these parts that tells the model nothing of its own in the conversation, and lets at least two
// tool calls overlap.
type Maker func(t testing.TB, p Parts) agent.Agent

// Run tests the promises of agent.Agent.
func Run(t *testing.T, make Maker) {
	for name, test := range map[string]func(*testing.T, Maker){
		"a plain answer":                               plainAnswer,
		"a call, then an answer":                       oneCall,
		"the next turn follows":                        nextTurn,
		"calls overlap only where tools allow it":      overlap,
		"results come in the model's order":            order,
		"what the model wrote badly is answered":       badCalls,
		"a failed model ends the turn":                 failedModel,
		"a response that is cut off makes no calls":    cutOff,
		"retries are logged":                           retries,
		"a turn that cannot begin is an error":         cannotBegin,
		"one turn at a time":                           oneAtATime,
		"cancelled while the model speaks":             cancelledInStream,
		"cancelled while tools run":                    cancelledInTools,
		"cancelled by somebody else":                   cancelledByOthers,
		"a cancelled turn can be followed by another":  cancelledThenNext,
		"nothing goes on when the log takes no events": deadLog,
		"each event is observed after it was logged":   observed,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, make)
		})
	}
}

// Session returns a new session in a directory of its own, closed when the test ends.
func Session(t testing.TB) session.Session {
	t.Helper()
	r, err := sessionjsonl.New(sessionjsonl.Params{
		Config: sessionjsonl.Config{Root: t.TempDir()}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.Store.Create(t.Context(), session.New{CWD: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Tool returns a tool that answers with what do returns.
func Tool(name string, parallel bool, do func(ctx context.Context, e tools.Execution) (string, error)) tools.Definition {
	return tools.Definition{
		Name: name, Description: "for tests",
		Parameters: &tools.Schema{Type: "object"}, Output: &tools.Schema{Type: "string"},
		Execute: func(ctx context.Context, e tools.Execution) (any, error) { return do(ctx, e) },
		Render: func(v json.RawMessage) (text string, err error) {
			err = json.Unmarshal(v, &text)
			return text, err
		},
		Parallel: func(json.RawMessage) bool { return parallel },
	}
}

// Registry returns a registry of tools.
func Registry(t testing.TB, all ...tools.Definition) tools.Registry {
	t.Helper()
	r := toolslocal.New(toolslocal.Params{Log: slog.New(slog.DiscardHandler)}).Registry
	for _, d := range all {
		if _, err := r.Register(d); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// Trace returns the events of a session, one word or two for each.
func Trace(s session.Session) []string {
	var all []string
	for _, e := range s.Events() {
		all = append(all, strings.TrimSpace(string(e.Data.Type())+" "+detail(e.Data)))
	}
	return all
}

func detail(d session.Data) string {
	switch d := d.(type) {
	case *session.UserMessage:
		return cmp.Or(d.Message.Source.Form, string(d.Message.Source.Kind))
	case *session.AssistantMessage:
		if d.Interrupted {
			return "interrupted"
		}
	case *session.ToolCall:
		return d.CallID
	case *session.ToolResult:
		if d.Error != nil {
			return d.Message.Source.CallID + " " + d.Error.Code
		}
		return d.Message.Source.CallID
	case *session.TurnEnd:
		switch d.Reason.Kind {
		case session.EndAborted:
			return "aborted " + d.Reason.Abort.Kind
		case session.EndError:
			return "error " + d.Reason.Error.Code
		}
		return string(d.Reason.Kind)
	case *session.CompactionEnd:
		if d.Error != nil {
			return d.Error.Code
		}
	}
	return ""
}

// Traced fails the test unless the session's events are these, and the log can be followed by another turn.
func Traced(t testing.TB, s session.Session, want ...string) {
	t.Helper()
	if d := gocmp.Diff(want, Trace(s)); d != "" {
		t.Errorf("events (want -, got +):\n%s", d)
	}
	if p := s.Position(); p.Turn != 0 || len(p.Unanswered) > 0 {
		t.Errorf("left open: %+v", p)
	}
}

func input(text string) agent.Input { return agent.Input{Messages: []llm.Message{llm.UserText(text)}} }

func mustTurn(ctx context.Context, t testing.TB, a agent.Agent, s session.Session, in agent.Input) agent.Outcome {
	t.Helper()
	o, err := a.Turn(ctx, s, in)
	if err != nil {
		t.Fatalf("no turn: %v", err)
	}
	return o
}

func texts(messages []llm.Message) []string {
	var all []string
	for _, m := range messages {
		for _, b := range m.Content {
			all = append(all, string(m.Role)+": "+b.Text)
		}
	}
	return all
}
