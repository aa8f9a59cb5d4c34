package session_test

import (
	"strings"
	"testing"
	"time"

	"dsh/internal/testkit"
	"dsh/modules/llm"
	"dsh/modules/session"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// after returns the state after the events.
func after(t *testing.T, events ...session.Data) *session.State {
	t.Helper()
	s := &session.State{}
	for _, d := range events {
		e, err := session.NewEvent(s.Next(), time.UnixMilli(1000), d)
		if err == nil {
			err = s.Apply(e)
		}
		if err != nil {
			t.Fatalf("%s: %v", d.Type(), err)
		}
	}
	return s
}

func calling() []session.Data {
	return []session.Data{
		&session.TurnStart{Turn: 1}, &session.StepStart{Turn: 1, Step: 1}, &session.UserMessage{Message: llm.UserText("x")},
		&session.AssistantMessage{Turn: 1, Step: 1, Message: llm.Response{Content: []llm.Block{
			{Type: llm.ToolCallBlock, CallID: "a", Name: "bash"}, {Type: llm.ToolCallBlock, CallID: "b", Name: "bash"},
		}}.Message()},
		&session.ToolCall{Turn: 1, Step: 1, CallID: "a", Name: "bash"},
		&session.ToolResult{Turn: 1, Step: 1, Message: llm.ToolResult("a", "done", false)},
		&session.CompactionStart{CompactionID: "k", Turn: new(1)},
	}
}

func TestCompactionKeepsCallsAndResultsTogether(t *testing.T) {
	t.Parallel()
	s := after(t, calling()...) // the surface: 2 user, 3 assistant, 5 the result of a; b has none
	for _, c := range []struct {
		start, end int64
		ok         bool
	}{
		{2, 2, true}, {2, 3, false}, {3, 3, false}, {5, 5, false}, {2, 5, false}, {3, 2, false}, {2, 4, false}, {0, 2, false},
	} {
		err := s.Check(&session.CompactionSummary{
			CompactionID: "k", Shadowed: session.Range{Start: c.start, End: c.end}, Message: llm.UserText("so far"),
		})
		if (err == nil) != c.ok {
			t.Errorf("from %d to %d: %v", c.start, c.end, err)
		}
	}
}

func TestReasonsOfATurnsEndAreWhole(t *testing.T) {
	t.Parallel()
	s := after(t, &session.TurnStart{Turn: 1})
	for kind, ok := range map[session.EndKind]bool{
		session.EndCompleted: true, session.EndBlocked: true, session.EndMaxTokens: true, session.EndInterrupted: true,
		session.EndAborted: false, session.EndError: false, "done": false, "": false,
	} {
		if err := s.Check(&session.TurnEnd{Turn: 1, Reason: session.Reason{Kind: kind}}); (err == nil) != ok {
			t.Errorf("%q: %v", kind, err)
		}
	}
	for _, r := range []session.Reason{
		{Kind: session.EndAborted, Abort: &session.Abort{Kind: "user"}},
		{Kind: session.EndError, Error: &llm.Error{Code: llm.CodeAuth}},
	} {
		if err := s.Check(&session.TurnEnd{Turn: 1, Reason: r}); err != nil {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

func TestAnUnansweredQuestionDoesNotOutliveItsTurn(t *testing.T) {
	t.Parallel()
	s := after(t, &session.TurnStart{Turn: 1}, &session.ApprovalAsked{ID: "q", ToolName: "bash"},
		&session.TurnEnd{Turn: 1, Reason: session.Reason{Kind: session.EndCompleted}})
	if err := s.Check(&session.ApprovalDecided{ID: "q", Outcome: "rejected"}); err == nil {
		t.Error("an answer after the turn is taken")
	}
	if err := s.Check(&session.ApprovalAsked{ID: "r", ToolName: "bash"}); err == nil {
		t.Error("a question outside of a turn is taken")
	}
	if got := s.Repair(); len(got) != 0 {
		t.Errorf("there is something to repair: %v", got)
	}
}

func TestTextShowsControlCharacters(t *testing.T) {
	t.Parallel()
	s := &session.State{}
	l := session.Log{Header: session.Header{ID: "session-x", CWD: "/w"}, Torn: 3}
	for _, d := range append(calling(), &session.Unknown{Of: "a\x1b[2J"}) {
		if m, is := d.(*session.ToolResult); is {
			m.Message.Content[0].Text = "one\n\x1b[31mtwo\u202e\tthree"
		}
		l.Events = append(l.Events, session.Event{Seq: s.Next(), Data: d})
	}
	var b strings.Builder
	if err := l.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"session-x in /w", "    one\n    \\x1b[31mtwo\\u202e\tthree\n", "call a bash", "a\\x1b[2J", "(3 bytes after this are incomplete)",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, b.String())
		}
	}
	if strings.ContainsAny(b.String(), "\x1b\u202e") {
		t.Errorf("control characters are left in %q", b.String())
	}
}
