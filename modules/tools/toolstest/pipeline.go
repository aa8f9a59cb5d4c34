package toolstest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"dsh/modules/tools"
)

func pipeline() []check {
	return []check{
		{"a value is validated and rendered", func(t testing.TB, r tools.Registry) {
			register(t, r, echo("a"))
			got := call(t, r, "a", "<&>\u2028")
			wantContent(t, got, "[<&>\u2028]")
			var value string
			if err := json.Unmarshal(got.Value, &value); err != nil || value != "<&>\u2028" {
				t.Fatalf("got value %s, %v", got.Value, err)
			}
		}},
		{"an unknown tool is an error", func(t testing.TB, r tools.Registry) {
			wantError(t, call(t, r, "nobody", "x"), tools.CodeUnknownTool, `unknown tool "nobody"`)
		}},
		{"invalid arguments do not reach the tool", func(t testing.TB, r tools.Registry) {
			register(t, r, doing("a", func(context.Context, tools.Execution) (any, error) {
				t.Error("the tool was executed")
				return "", nil
			}))
			for arguments, text := range map[string]string{
				``:                           `invalid arguments: missing required property "text"`,
				`{}`:                         `invalid arguments: missing required property "text"`,
				`{"text":1}`:                 `invalid arguments: text: must be a string`,
				`[]`:                         `invalid arguments: must be an object`,
				`{"text":"a"`:                `losslessly JSON-serializable`,
				`{"text":"a"}{}`:             `losslessly JSON-serializable`,
				`{"text":"a","text":"b"}`:    `losslessly JSON-serializable`,
				`{"text":"\ud800"}`:          `losslessly JSON-serializable`,
				"{\"text\":\"\xff\"}":        `losslessly JSON-serializable`,
				strings.Repeat("[", 1000000): `losslessly JSON-serializable`,
			} {
				got := r.Execute(t.Context(), tools.Execution{Name: "a", Arguments: json.RawMessage(arguments)})
				wantError(t, got, tools.CodeInvalidArgs, text)
			}
		}},
		{"arguments that nobody named are passed through", func(t testing.TB, r tools.Registry) {
			var seen string
			register(t, r, doing("a", func(_ context.Context, e tools.Execution) (any, error) {
				seen = string(e.Arguments)
				return "", nil
			}))
			const arguments = `{"text":"x","other":9007199254740993}`
			got := r.Execute(t.Context(), tools.Execution{Name: "a", Arguments: json.RawMessage(arguments)})
			wantContent(t, got, "[]")
			if seen != arguments {
				t.Fatalf("the tool got %s, want %s", seen, arguments)
			}
		}},
		{"a closed object refuses what it does not name", func(t testing.TB, r tools.Registry) {
			d := echo("a")
			d.Parameters.Closed = true
			register(t, r, d)
			got := r.Execute(t.Context(), tools.Execution{Name: "a", Arguments: json.RawMessage(`{"text":"x","other":1}`)})
			wantError(t, got, tools.CodeInvalidArgs, `"other" is not a declared property (additionalProperties: false)`)
		}},
		{"the tool gets the call as it came", func(t testing.TB, r tools.Registry) {
			var got tools.Execution
			register(t, r, doing("a", func(_ context.Context, e tools.Execution) (any, error) {
				got = e
				e.Progress("stdout", []byte("hi"))
				return "", nil
			}))
			e, progress := execution("a", "x"), ""
			e.Session = &tools.SessionRef{ID: "session-1", CWD: "/"}
			e.Stdin = strings.NewReader("in")
			e.Progress = func(stream string, p []byte) { progress = stream + ":" + string(p) }
			wantContent(t, r.Execute(t.Context(), e), "[]")
			if got.CallID != "call-1" || got.Name != "a" || got.Session == nil || *got.Session != *e.Session {
				t.Fatalf("the tool got %+v", got)
			}
			if in, _ := io.ReadAll(got.Stdin); string(in) != "in" || progress != "stdout:hi" {
				t.Fatalf("got stdin %q, progress %q", in, progress)
			}
		}},
		{"hooks and tool cannot change each other's arguments", func(t testing.TB, r tools.Registry) {
			spoil := func(e tools.Execution) {
				for i := range e.Arguments {
					e.Arguments[i] = ' '
				}
			}
			r.BeforeExecute(func(_ context.Context, e tools.Execution) (tools.Decision, error) {
				spoil(e)
				return tools.Decision{}, nil
			})
			register(t, r, echo("a"))
			e := execution("a", "x")
			before := string(e.Arguments)
			wantContent(t, r.Execute(t.Context(), e), "[x]")
			if string(e.Arguments) != before {
				t.Fatalf("the caller's arguments became %q", e.Arguments)
			}
		}},
		{"an error keeps its code", func(t testing.TB, r tools.Registry) {
			register(t, r, doing("a", func(context.Context, tools.Execution) (any, error) {
				return nil, fmt.Errorf("around: %w", &tools.Error{Code: "MINE", Message: "boom"})
			}))
			wantError(t, call(t, r, "a", "x"), "MINE", "around: boom")
		}},
		{"an error without a code is internal", func(t testing.TB, r tools.Registry) {
			register(t, r, doing("a", func(context.Context, tools.Execution) (any, error) { return nil, errBoom }))
			wantError(t, call(t, r, "a", "x"), tools.CodeInternal, "boom")
		}},
		{"a panic in a tool is a failed call", func(t testing.TB, r tools.Registry) {
			register(t, r, doing("a", func(context.Context, tools.Execution) (any, error) { panic("boom") }))
			register(t, r, echo("b"))
			wantError(t, guarded(t, r, "a"), tools.CodeInternal, "boom")
			wantContent(t, call(t, r, "b", "x"), "[x]")
		}},
		{"an error that cannot be printed is a failed call", func(t testing.TB, r tools.Registry) {
			register(t, r, doing("a", func(context.Context, tools.Execution) (any, error) {
				var none *tools.Error
				return nil, none
			}))
			wantError(t, guarded(t, r, "a"), tools.CodeInternal, "")
		}},
		{"an invalid value is an error", func(t testing.TB, r tools.Registry) {
			var value any
			register(t, r, doing("a", func(context.Context, tools.Execution) (any, error) { return value, nil }))
			for _, value = range []any{1, nil, math.NaN(), math.Inf(1), make(chan int), json.RawMessage("{"), json.RawMessage("\"\xff\"")} {
				wantError(t, guarded(t, r, "a"), tools.CodeInvalidOutput, `tool "a" returned invalid output: `)
			}
		}},
		{"a renderer that fails is an error", func(t testing.TB, r tools.Registry) {
			d := echo("a")
			d.Render = func(json.RawMessage) (string, error) { return "", errBoom }
			register(t, r, d)
			d = echo("b")
			d.Render = func(json.RawMessage) (string, error) { panic("boom") }
			register(t, r, d)
			d = echo("c")
			d.Render = func(json.RawMessage) (string, error) { return "\xff", nil }
			register(t, r, d)
			wantError(t, call(t, r, "a", "x"), tools.CodeInvalidOutput, "output.render failed: boom")
			wantError(t, guarded(t, r, "b"), tools.CodeInvalidOutput, "boom")
			wantError(t, call(t, r, "c", "x"), tools.CodeInvalidOutput, "output.render")
		}},
		{"calls may overlap each other and registrations", func(t testing.TB, r tools.Registry) {
			met := make(chan string)
			register(t, r, doing("a", func(ctx context.Context, _ tools.Execution) (any, error) {
				// The other call may have the name; what matters is that to register here blocks nobody.
				if undo, err := r.Register(echo("b")); err == nil {
					defer undo()
				}
				ctx, cancel := context.WithTimeout(ctx, patience)
				defer cancel()
				select {
				case met <- "sent":
					return "sent", nil
				case <-met:
					return "received", nil
				case <-ctx.Done():
					return nil, fmt.Errorf("the other call did not come: %w", ctx.Err())
				}
			}))
			first := make(chan tools.Result)
			go func() { first <- call(t, r, "a", "x") }()
			second := call(t, r, "a", "x")
			if one := <-first; one.Error != nil || second.Error != nil {
				t.Fatalf("got %v and %v", one.Error, second.Error)
			}
		}},
	}
}

// patience is how long a check waits for what should come at once.
const patience = 10 * time.Second

// guarded is call for a registry that may let a panic through.
func guarded(t testing.TB, r tools.Registry, tool string) (got tools.Result) {
	t.Helper()
	defer func() {
		if v := recover(); v != nil {
			t.Fatalf("the panic %v came through", v)
		}
	}()
	return call(t, r, tool, "x")
}
