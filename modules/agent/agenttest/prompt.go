package agenttest

import (
	"context"
	"errors"
	"math"
	"testing"

	"dsh/modules/agent"
	"dsh/modules/llm"
	"dsh/modules/session"
)

// RunPrompt tests the promises of agent.Prompt. A new prompt says nothing.
func RunPrompt(t *testing.T, newPrompt func(t testing.TB) agent.Prompt) {
	assembled := func(t *testing.T, p agent.Prompt, want agent.Assembly) {
		t.Helper()
		if got, err := p.Assemble(t.Context(), agent.View{}); got != want || err != nil {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
	add := func(t *testing.T, to func(agent.Section) (func(), error), id string, order float64, text string) (undo func()) {
		t.Helper()
		undo, err := to(agent.Plain(id, order, text))
		if err != nil {
			t.Fatal(err)
		}
		return undo
	}
	t.Run("sections come by order, then as they were added", func(t *testing.T) {
		p := newPrompt(t)
		add(t, p.Section, "c", 7, "three")
		add(t, p.Section, "b", -1.5, "two")
		add(t, p.Section, "a", 7, "four")
		add(t, p.Section, "z", math.MaxFloat64, " \n")
		add(t, p.Context, "c", 7, "context")
		assembled(t, p, agent.Assembly{System: "two\n\nthree\n\nfour", Contexts: "context"})
	})
	t.Run("undo removes its own section only", func(t *testing.T) {
		p := newPrompt(t)
		undo := add(t, p.Section, "a", 0, "old")
		add(t, p.Context, "a", 0, "context")
		undo()
		add(t, p.Section, "a", 0, "new")
		undo()
		assembled(t, p, agent.Assembly{System: "new", Contexts: "context"})
	})
	t.Run("an id that is taken and a missing part are refused", func(t *testing.T) {
		p := newPrompt(t)
		add(t, p.Section, "a", 0, "first")
		for name, s := range map[string]agent.Section{
			"taken": agent.Plain("a", 1, "second"), "no id": agent.Plain("", 0, "x"), "no text": {ID: "b"},
			"no order": agent.Plain("c", math.NaN(), "x"),
		} {
			if _, err := p.Section(s); !isInvalid(err) {
				t.Errorf("%s: got %v", name, err)
			}
		}
		assembled(t, p, agent.Assembly{System: "first"})
	})
	t.Run("a section sees what it may speak about", func(t *testing.T) {
		p := newPrompt(t)
		view := agent.View{Session: session.Header{ID: "s", CWD: "/w"}, Target: llm.Target{Model: "m"}}
		if _, err := p.Section(agent.Section{ID: "a", Text: func(_ context.Context, v agent.View) (string, error) {
			if v != view {
				t.Errorf("got %+v", v)
			}
			return "", nil
		}}); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Assemble(t.Context(), view); err != nil {
			t.Error(err)
		}
	})
	t.Run("a section that fails fails all", func(t *testing.T) {
		p := newPrompt(t)
		broken := errors.New("broken")
		add(t, p.Section, "a", 0, "fine")
		if _, err := p.Context(agent.Section{ID: "b", Text: func(context.Context, agent.View) (string, error) { return "", broken }}); err != nil {
			t.Fatal(err)
		}
		got, err := p.Assemble(t.Context(), agent.View{})
		e, ok := errors.AsType[*agent.AssemblyError](err)
		if !ok || e.ID != "b" || !errors.Is(err, broken) || got != (agent.Assembly{}) {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}
