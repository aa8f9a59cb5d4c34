package toolstest

import (
	"context"
	"encoding/json"
	"testing"

	"dsh/modules/tools"
)

// answering adds a hook that makes another result of each result.
func answering(r tools.Registry, f func(tools.Result) (tools.Result, error)) {
	r.AfterExecute(func(_ context.Context, _ tools.Execution, got tools.Result) (tools.Result, error) { return f(got) })
}

func results() []check {
	return []check{
		{"hooks after see results in order", func(t testing.TB, r tools.Registry) {
			register(t, r, echo("a"))
			for _, mark := range []string{"1", "2"} {
				answering(r, func(got tools.Result) (tools.Result, error) {
					got.Content += mark
					return got, nil
				})
			}
			got := call(t, r, "a", "x")
			wantContent(t, got, "[x]12")
			if string(got.Value) != `"x"` {
				t.Fatalf("got value %s, want it untouched", got.Value)
			}
		}},
		{"another value is validated and rendered", func(t testing.TB, r tools.Registry) {
			register(t, r, echo("a"))
			value := `"y"`
			answering(r, func(got tools.Result) (tools.Result, error) {
				got.Value = json.RawMessage(value)
				return got, nil
			})
			got := call(t, r, "a", "x")
			wantContent(t, got, "[y]")
			if string(got.Value) != value {
				t.Fatalf("got value %s, want %s", got.Value, value)
			}
			for _, value = range []string{`null`, `1`, `{`} {
				wantError(t, call(t, r, "a", "x"), tools.CodeInvalidOutput, `tool "a" returned invalid output: `)
			}
		}},
		{"another value and other content contradict each other", func(t testing.TB, r tools.Registry) {
			register(t, r, echo("a"))
			answering(r, func(tools.Result) (tools.Result, error) {
				return tools.Result{Content: "y", Value: json.RawMessage(`"y"`)}, nil
			})
			wantError(t, call(t, r, "a", "x"), tools.CodeInternal,
				"tools/post-execute accept decision cannot replace both value and content")
		}},
		{"a blocked result shows the feedback alone", func(t testing.TB, r tools.Registry) {
			var blocked tools.Result
			register(t, r, echo("a"))
			answering(r, func(got tools.Result) (tools.Result, error) {
				if blocked.Content == "" {
					blocked.Content = got.Content
				}
				return tools.Result{Content: blocked.Content, Value: got.Value, Error: blocked.Error}, nil
			})
			for _, c := range []struct {
				content string
				err     tools.Error
				want    tools.Result
			}{
				{"look elsewhere", tools.Error{}, tools.Result{
					Content: "look elsewhere", Error: &tools.Error{Code: tools.CodeDenied, Message: "look elsewhere"},
				}},
				{"look elsewhere", tools.Error{Code: "SECRET", Message: "a key"}, tools.Result{
					Content: "look elsewhere", Error: &tools.Error{Code: "SECRET", Message: "a key"},
				}},
				{"", tools.Error{}, tools.Result{
					Content: "tool result blocked by post-execute policy",
					Error:   &tools.Error{Code: tools.CodeDenied, Message: "tool result blocked by post-execute policy"},
				}},
			} {
				blocked = tools.Result{Content: c.content, Error: &c.err}
				got := call(t, r, "a", "x")
				if got.Error == nil || *got.Error != *c.want.Error || got.Content != c.want.Content || got.Value != nil {
					t.Fatalf("got %+v (%+v), want %+v (%+v)", got, got.Error, c.want, c.want.Error)
				}
			}
		}},
		{"a failed call stays failed", func(t testing.TB, r tools.Registry) {
			register(t, r, doing("a", func(context.Context, tools.Execution) (any, error) { return nil, errBoom }))
			next := tools.Result{Content: "all is well"}
			answering(r, func(tools.Result) (tools.Result, error) { return next, nil })
			got := call(t, r, "a", "x")
			if got.Error == nil || got.Error.Message != "boom" || got.Content != "all is well" {
				t.Fatalf("got %+v (%v), want the error with other content", got, got.Error)
			}
			next.Value = json.RawMessage(`"y"`)
			wantError(t, call(t, r, "a", "x"), tools.CodeInternal, "tools/post-execute cannot replace the value of a failed result")
		}},
		{"a hook after that fails ends the call", func(t testing.TB, r tools.Registry) {
			var seen []string
			register(t, r, echo("a"))
			fail := func() error { return errBoom }
			answering(r, func(got tools.Result) (tools.Result, error) { return got, fail() })
			seeing(r, &seen)
			wantError(t, call(t, r, "a", "x"), tools.CodeInternal, "boom")
			fail = func() error { panic("boom") }
			wantError(t, guarded(t, r, "a"), tools.CodeInternal, "boom")
			wantStrings(t, "seen", seen)
		}},
	}
}
