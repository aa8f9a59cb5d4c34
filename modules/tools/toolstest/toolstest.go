package toolstest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"dsh/modules/tools"
)

// Run tests that the registries which newRegistry makes, empty and without an approval service, keep what the contract
// promises.
func Run(t *testing.T, newRegistry func(testing.TB) tools.Registry) {
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.check(t, newRegistry(t))
		})
	}
}

// check is one promise.
type check struct {
	name  string
	check func(testing.TB, tools.Registry)
}

func checks() []check {
	var all []check
	for _, part := range [][]check{registration(), pipeline(), cancellation(), hooks(), results()} {
		all = append(all, part...)
	}
	return all
}

// echo is a tool that returns its argument `text`, in brackets when rendered.
func echo(name string) tools.Definition {
	return tools.Definition{
		Name:        name,
		Description: "returns its text",
		Parameters: &tools.Schema{
			Type:       "object",
			Properties: []tools.Property{{Name: "text", Schema: &tools.Schema{Type: "string"}}},
			Required:   []string{"text"},
		},
		Output: &tools.Schema{Type: "string"},
		Execute: func(_ context.Context, e tools.Execution) (any, error) {
			var a struct{ Text string }
			err := json.Unmarshal(e.Arguments, &a)
			return a.Text, err
		},
		Render: func(value json.RawMessage) (string, error) {
			var text string
			err := json.Unmarshal(value, &text)
			return "[" + text + "]", err
		},
	}
}

// doing is echo with another body.
func doing(name string, body func(context.Context, tools.Execution) (any, error)) tools.Definition {
	d := echo(name)
	d.Execute = body
	return d
}

func register(t testing.TB, r tools.Registry, d tools.Definition) (undo func()) {
	t.Helper()
	undo, err := r.Register(d)
	if err != nil {
		t.Fatalf("Register(%q): %v", d.Name, err)
	}
	return undo
}

// call executes tool with a text.
func call(t testing.TB, r tools.Registry, tool, text string) tools.Result {
	t.Helper()
	return r.Execute(t.Context(), execution(tool, text))
}

func execution(tool, text string) tools.Execution {
	arguments, _ := json.Marshal(map[string]string{"text": text})
	return tools.Execution{CallID: "call-1", Name: tool, Arguments: arguments}
}

func wantContent(t testing.TB, r tools.Result, content string) {
	t.Helper()
	if r.Error != nil || r.Content != content {
		t.Fatalf("got content %q, error %v, want content %q", r.Content, r.Error, content)
	}
}

// wantError checks that r is an error with this code, told to the model with its message.
func wantError(t testing.TB, r tools.Result, code, text string) {
	t.Helper()
	switch {
	case r.Error == nil:
		t.Fatalf("got content %q and no error, want an error with code %s", r.Content, code)
	case r.Error.Code != code || !strings.Contains(r.Error.Message, text):
		t.Fatalf("got error %s %q, want %s with %q", r.Error.Code, r.Error.Message, code, text)
	case r.Value != nil:
		t.Fatalf("got value %s with error %v, want none", r.Value, r.Error)
	case r.Content != "Error: "+r.Error.Message:
		t.Fatalf("got content %q, want %q", r.Content, "Error: "+r.Error.Message)
	}
}

var errBoom = errors.New("boom")
