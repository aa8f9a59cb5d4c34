package toolstest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"dsh/modules/tools"
)

func registration() []check {
	return []check{
		{"definitions come in order of registration", func(t testing.TB, r tools.Registry) {
			for _, name := range []string{"c", "a", "b"} {
				register(t, r, echo(name))
			}
			wantNames(t, r, "c", "a", "b")
		}},
		{"undo removes the tool alone", func(t testing.TB, r tools.Registry) {
			register(t, r, echo("a"))
			undo := register(t, r, echo("b"))
			register(t, r, echo("c"))
			undo()
			wantNames(t, r, "a", "c")
			wantError(t, call(t, r, "b", "x"), tools.CodeUnknownTool, `unknown tool "b"`)
			wantContent(t, call(t, r, "c", "x"), "[x]")
		}},
		{"undo again does not remove who took the name since", func(t testing.TB, r tools.Registry) {
			undo := register(t, r, echo("a"))
			undo()
			register(t, r, echo("a"))
			undo()
			wantNames(t, r, "a")
		}},
		{"a taken name is refused and stays with its owner", func(t testing.TB, r tools.Registry) {
			register(t, r, echo("a"))
			if _, err := r.Register(doing("a", func(context.Context, tools.Execution) (any, error) { return "usurped", nil })); err == nil {
				t.Fatal("a second tool of one name was registered")
			}
			wantNames(t, r, "a")
			wantContent(t, call(t, r, "a", "x"), "[x]")
		}},
		{"a missing part is refused", func(t testing.TB, r tools.Registry) {
			for part, remove := range map[string]func(*tools.Definition){
				"name":        func(d *tools.Definition) { d.Name = "" },
				"parameters":  func(d *tools.Definition) { d.Parameters = nil },
				"output":      func(d *tools.Definition) { d.Output = nil },
				"execute":     func(d *tools.Definition) { d.Execute = nil },
				"render":      func(d *tools.Definition) { d.Render = nil },
				"object root": func(d *tools.Definition) { d.Parameters = &tools.Schema{Type: "string"} },
			} {
				d := echo("a")
				remove(&d)
				if _, err := r.Register(d); err == nil {
					t.Errorf("a tool without %s was registered", part)
				}
			}
			wantNames(t, r)
		}},
		{"a schema outside of the subset is refused", func(t testing.TB, r tools.Registry) {
			unsupported := &tools.Schema{Type: "object", Required: []string{"absent"}}
			for part, spoil := range map[string]func(*tools.Definition){
				"parameters": func(d *tools.Definition) { d.Parameters = unsupported },
				"output":     func(d *tools.Definition) { d.Output = unsupported },
			} {
				d := echo("a")
				spoil(&d)
				_, err := r.Register(d)
				var schema *tools.SchemaError
				if !errors.As(err, &schema) {
					t.Errorf("%s: got error %v, want a *tools.SchemaError", part, err)
				}
			}
			wantNames(t, r)
		}},
		{"undo does not reach into a call that has begun", func(t testing.TB, r tools.Registry) {
			var undo func()
			undo = register(t, r, doing("a", func(context.Context, tools.Execution) (any, error) {
				undo()
				return "done", nil
			}))
			wantContent(t, call(t, r, "a", "x"), "[done]")
			wantNames(t, r)
		}},
	}
}

func wantNames(t testing.TB, r tools.Registry, want ...string) {
	t.Helper()
	var got []string
	for _, d := range r.Definitions() {
		got = append(got, d.Name)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("got definitions %q, want %q", got, want)
	}
}
