package toolslocal_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"dsh/modules/tools"
)

// BenchmarkPipeline is what a call costs besides the work of its tool, with hooks, and arguments and a value of the size
// of an ordinary command's.
func BenchmarkPipeline(b *testing.B) {
	r := newRegistry(b)
	text := &tools.Schema{Type: "string"}
	value := map[string]any{"kind": "foreground", "text": strings.Repeat("a line of output\n", 20), "exitCode": 0, "signal": nil}
	_, err := r.Register(tools.Definition{
		Name: "work",
		Parameters: &tools.Schema{
			Type: "object", Required: []string{"command", "description"},
			Properties: []tools.Property{{Name: "command", Schema: text}, {Name: "description", Schema: text}},
		},
		Output: &tools.Schema{OneOf: []*tools.Schema{
			{
				Type: "object", Closed: true, Required: []string{"kind", "text"},
				Properties: []tools.Property{
					{Name: "kind", Schema: &tools.Schema{Type: "string", Const: "foreground"}},
					{Name: "text", Schema: text},
					{Name: "exitCode", Schema: &tools.Schema{Type: "integer"}},
					{Name: "signal", Schema: &tools.Schema{Type: "null"}},
				},
			},
			{
				Type: "object", Closed: true, Required: []string{"kind"},
				Properties: []tools.Property{{Name: "kind", Schema: &tools.Schema{Type: "string", Const: "background"}}},
			},
		}},
		Execute: func(context.Context, tools.Execution) (any, error) { return value, nil },
		Render:  func(json.RawMessage) (string, error) { return "text", nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	for range 3 {
		r.BeforeExecute(func(context.Context, tools.Execution) (tools.Decision, error) { return tools.Decision{}, nil })
		r.AfterExecute(func(_ context.Context, _ tools.Execution, got tools.Result) (tools.Result, error) { return got, nil })
	}
	e := tools.Execution{Name: "work", Arguments: json.RawMessage(`{"command":"go test ./...","description":"Run all tests"}`)}
	b.ReportAllocs()
	for b.Loop() {
		if got := r.Execute(b.Context(), e); got.Error != nil {
			b.Fatal(got.Error)
		}
	}
}
