package toolslocal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"reflect"
	"strings"
	"testing"

	"dsh/modules/tools"
	"dsh/modules/toolslocal"
)

// tool returns a tool that takes anything and returns value.
func tool(value any, err error) tools.Definition {
	return tools.Definition{
		Name:       "t",
		Parameters: &tools.Schema{Type: "object"},
		Output: &tools.Schema{
			Type: "object", Required: []string{"a", "b"},
			Properties: []tools.Property{
				{Name: "a", Schema: &tools.Schema{Type: "string"}},
				{Name: "b", Schema: &tools.Schema{Type: "string"}},
			},
		},
		Execute: func(context.Context, tools.Execution) (any, error) { return value, err },
		Render:  func(json.RawMessage) (string, error) { return "", errors.New("boom") },
	}
}

type unwilling struct{ panics bool }

func (u unwilling) MarshalJSON() ([]byte, error) {
	if u.panics {
		panic("boom")
	}
	return nil, errors.New("boom")
}

type hostile struct{}

func (hostile) Error() string { panic("boom") }

// What a model is told, to the letter.
func TestFailureTexts(t *testing.T) {
	for _, c := range []struct {
		name  string
		value any
		err   error
		code  string
		want  string
	}{
		{"two violations", map[string]any{"a": 1}, nil, tools.CodeInvalidOutput, `tool "t" returned invalid output: missing required property "b"; a: must be a string`},
		{"not a number", math.NaN(), nil, tools.CodeInvalidOutput, `tool "t" returned invalid output: value is not lossless JSON`},
		{"a function", func() {}, nil, tools.CodeInvalidOutput, `tool "t" returned invalid output: value is not lossless JSON`},
		{"two members of one name", json.RawMessage(`{"a":"","a":"","b":""}`), nil, tools.CodeInvalidOutput, `tool "t" returned invalid output: value is not lossless JSON`},
		{"a method that fails", unwilling{}, nil, tools.CodeInvalidOutput, `tool "t" returned invalid output: value snapshot failed: json: error calling MarshalJSON for type toolslocal_test.unwilling: boom`},
		{"a method that panics", unwilling{panics: true}, nil, tools.CodeInvalidOutput, `tool "t" returned invalid output: value snapshot failed: boom`},
		{"render", map[string]any{"a": "", "b": ""}, nil, tools.CodeInvalidOutput, `tool "t" returned invalid output: output.render failed: boom`},
		{"an error that panics", nil, hostile{}, tools.CodeInternal, `<unprintable thrown value>`},
		{"an error that is not UTF-8", nil, errors.New("a\xff"), tools.CodeInternal, "a\uFFFD"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRegistry(t)
			if _, err := r.Register(tool(c.value, c.err)); err != nil {
				t.Fatal(err)
			}
			got := r.Execute(t.Context(), tools.Execution{Name: "t"})
			if got.Error == nil || *got.Error != (tools.Error{Code: c.code, Message: c.want}) || got.Content != "Error: "+c.want {
				t.Fatalf("got %q, %+v, want %s %q", got.Content, got.Error, c.code, c.want)
			}
		})
	}
}

func TestEndlessNameIsNotRepeated(t *testing.T) {
	got := newRegistry(t).Execute(t.Context(), tools.Execution{Name: strings.Repeat("x", 1<<20)})
	if want := `Error: unknown tool "` + strings.Repeat("x", 100) + `..."`; got.Content != want {
		t.Fatalf("got %.200s, want %s", got.Content, want)
	}
}

func TestRegistrationTexts(t *testing.T) {
	for want, spoil := range map[string]func(*tools.Definition){
		`tool "t" must declare output { schema, render }`: func(d *tools.Definition) { d.Render = nil },
		`tool "t" must declare parameters of type object`: func(d *tools.Definition) { d.Parameters = nil },
		`tool "t": unsupported JSON schema: output.enum must be a non-empty array of string values`: func(d *tools.Definition) {
			d.Output = &tools.Schema{Type: "string", Enum: []any{}}
		},
	} {
		d := tool(nil, nil)
		spoil(&d)
		if _, err := newRegistry(t).Register(d); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	r := newRegistry(t)
	if _, err := r.Register(tool(nil, nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Register(tool(nil, nil)); err == nil || err.Error() != `tool "t" is already registered` {
		t.Errorf("got %v", err)
	}
}

func TestAPanicIsInTheLogWithItsStack(t *testing.T) {
	var log bytes.Buffer
	r := toolslocal.New(toolslocal.Params{Log: slog.New(slog.NewTextHandler(&log, nil))}).Registry
	d := tool(nil, nil)
	d.Execute = func(context.Context, tools.Execution) (any, error) { panic("boom") }
	if _, err := r.Register(d); err != nil {
		t.Fatal(err)
	}
	got := r.Execute(t.Context(), tools.Execution{Name: "t", CallID: "call-7"})
	if got.Content != `Error: tool "t" panicked: boom` {
		t.Errorf("got %q", got.Content)
	}
	for _, want := range []string{"level=ERROR", "call=call-7", "texts_test.go"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %s:\n%s", want, log.String())
		}
	}
}

func TestModuleProvidesTheRegistry(t *testing.T) {
	m := toolslocal.Module()
	if got := m.Provides(); len(got) != 1 || got[0] != reflect.TypeFor[tools.Registry]() || len(m.Needs()) != 1 || !m.Needs()[0].Optional {
		t.Fatalf("got provides %v, needs %v", got, m.Needs())
	}
}
