package toolstest

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"dsh/modules/tools"
)

// asking adds a hook that notes its name and decides.
func asking(r tools.Registry, asked *[]string, name string, d tools.Decision) (undo func()) {
	return r.BeforeExecute(func(context.Context, tools.Execution) (tools.Decision, error) {
		*asked = append(*asked, name)
		return d, nil
	})
}

// seeing adds a hook that notes what it sees and lets it be.
func seeing(r tools.Registry, seen *[]string) (undo func()) {
	return r.AfterExecute(func(_ context.Context, _ tools.Execution, got tools.Result) (tools.Result, error) {
		*seen = append(*seen, got.Content)
		return got, nil
	})
}

func wantStrings(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s: got %q, want %q", what, got, want)
	}
}

func hooks() []check {
	allow := tools.Decision{}
	return []check{
		{"hooks are asked in order and the first that does not allow decides", func(t testing.TB, r tools.Registry) {
			var asked []string
			asking(r, &asked, "1", allow)
			asking(r, &asked, "2", tools.Decision{Verdict: tools.Deny, Reason: "not by me"})
			asking(r, &asked, "3", tools.Decision{Verdict: tools.Deny, Reason: "nor by me"})
			register(t, r, doing("a", func(context.Context, tools.Execution) (any, error) {
				t.Error("the tool was executed")
				return "", nil
			}))
			wantError(t, call(t, r, "a", "x"), tools.CodeDenied, "not by me")
			wantStrings(t, "asked", asked, "1", "2")
		}},
		{"undo removes that hook alone", func(t testing.TB, r tools.Registry) {
			var asked, seen []string
			register(t, r, echo("a"))
			asking(r, &asked, "1", allow)
			undo := asking(r, &asked, "2", tools.Decision{Verdict: tools.Deny})
			asking(r, &asked, "3", allow)
			unsee := seeing(r, &seen)
			undo()
			undo()
			unsee()
			wantContent(t, call(t, r, "a", "x"), "[x]")
			wantStrings(t, "asked", asked, "1", "3")
			wantStrings(t, "seen", seen)
		}},
		{"hooks are asked only about what could be executed", func(t testing.TB, r tools.Registry) {
			var asked, seen []string
			asking(r, &asked, "1", allow)
			seeing(r, &seen)
			register(t, r, echo("a"))
			call(t, r, "nobody", "x")
			r.Execute(t.Context(), tools.Execution{Name: "a", Arguments: json.RawMessage(`{"text":1}`)})
			wantStrings(t, "asked", asked)
			wantStrings(t, "seen", seen)
		}},
		{"to ask without anybody to answer is a denial", func(t testing.TB, r tools.Registry) {
			reason := "wants to delete everything"
			r.BeforeExecute(func(context.Context, tools.Execution) (tools.Decision, error) {
				return tools.Decision{Verdict: tools.Ask, Reason: reason}, nil
			})
			register(t, r, doing("a", func(context.Context, tools.Execution) (any, error) {
				t.Error("the tool was executed")
				return "", nil
			}))
			wantError(t, call(t, r, "a", "x"), tools.CodeDenied, reason)
			reason = ""
			wantError(t, call(t, r, "a", "x"), tools.CodeDenied, `tool "a" requires approval (not yet supported)`)
		}},
		{"a verdict that nobody knows is no permission", func(t testing.TB, r tools.Registry) {
			var asked []string
			asking(r, &asked, "1", tools.Decision{Verdict: tools.Ask + 1})
			register(t, r, echo("a"))
			wantError(t, call(t, r, "a", "x"), tools.CodeDenied, "")
		}},
		{"a denial is shown to the hooks after", func(t testing.TB, r tools.Registry) {
			var asked, seen []string
			asking(r, &asked, "1", tools.Decision{Verdict: tools.Deny, Reason: "no"})
			seeing(r, &seen)
			register(t, r, echo("a"))
			call(t, r, "a", "x")
			wantStrings(t, "seen", seen, "Error: no")
		}},
		{"a hook before that fails ends the call", func(t testing.TB, r tools.Registry) {
			var seen []string
			fail := func() error { return errBoom }
			r.BeforeExecute(func(context.Context, tools.Execution) (tools.Decision, error) { return tools.Decision{}, fail() })
			seeing(r, &seen)
			register(t, r, doing("a", func(context.Context, tools.Execution) (any, error) {
				t.Error("the tool was executed")
				return "", nil
			}))
			wantError(t, call(t, r, "a", "x"), tools.CodeInternal, "boom")
			fail = func() error { panic("boom") }
			wantError(t, guarded(t, r, "a"), tools.CodeInternal, "boom")
			fail = func() error { return &tools.Error{Code: "MINE", Message: "boom"} }
			wantError(t, call(t, r, "a", "x"), "MINE", "boom")
			wantStrings(t, "seen", seen)
		}},
	}
}
