package llmscript_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/testkit"
	"dsh/modules/llm"
	"dsh/modules/llm/llmtest"
	"dsh/modules/llmscript"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// load starts a row over a script.
func load(t testing.TB, text string) (llm.Model, string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := llmscript.New(llmscript.Params{Config: llmscript.Config{File: file}})
	if err != nil {
		t.Fatal(err)
	}
	return r.Model, file, r.Runner.Start(t.Context())
}

func play(t testing.TB, text string) llm.Model {
	t.Helper()
	m, _, err := load(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestConformance(t *testing.T) {
	t.Parallel()
	llmtest.Run(t, func(t testing.TB, steps ...llmtest.Step) llm.Model {
		var script strings.Builder
		for _, st := range steps {
			line, err := json.Marshal(written(st))
			if err != nil {
				t.Fatal(err)
			}
			script.WriteString("- " + string(line) + "\n")
		}
		return play(t, script.String())
	})
}

func written(st llmtest.Step) map[string]any {
	w := map[string]any{}
	if st.Silent {
		w["delayMs"], w["text"] = 3_600_000, "too late"
	}
	if st.Failure != nil {
		w["error"] = map[string]any{"code": st.Failure.Code, "message": st.Failure.Message, "retryAfterMs": st.Failure.RetryAfterMs}
	}
	var calls []map[string]any
	for _, b := range st.Content {
		switch b.Type {
		case llm.TextBlock:
			w["text"] = b.Text
		case llm.ReasoningBlock:
			w["reasoning"] = b.Text
		default:
			calls = append(calls, map[string]any{"name": b.Name, "arguments": b.Arguments})
		}
	}
	if calls != nil {
		w["tools"] = calls
	}
	return w
}

func TestArgumentsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	m := play(t, "- tools: [{name: bash, arguments: {z: 1, command: \"a\", b: off}}, {name: list}]\n")
	r, err := m.Generate(t.Context(), llm.Request{Messages: []llm.Message{llm.UserText("x")}})
	want := []llm.Block{
		{Type: llm.ToolCallBlock, CallID: "call-1", Name: "bash", Arguments: `{"z":1,"command":"a","b":"off"}`},
		{Type: llm.ToolCallBlock, CallID: "call-2", Name: "list"},
	}
	if diff := cmp.Diff(want, r.Content); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestScriptThatHasRunOutIsAnError(t *testing.T) {
	t.Parallel()
	m := play(t, "- text: one\n")
	ask := llm.Request{Messages: []llm.Message{llm.UserText("x")}}
	if _, err := m.Generate(t.Context(), ask); err != nil {
		t.Fatal(err)
	}
	_, err := m.Generate(t.Context(), ask)
	if e, is := errors.AsType[*llm.Error](err); !is || llm.Passing(e.Code) || !strings.Contains(e.Message, "script.yaml has 1 steps") {
		t.Errorf("got %v", err)
	}
}

func TestExpectationLooksAtTheLastToolResult(t *testing.T) {
	t.Parallel()
	shown := llm.Request{Messages: []llm.Message{
		llm.UserText("x"), llm.ToolResult("a", "first", false), llm.ToolResult("b", "second\n[exit code: 1]", false), llm.UserText("first"),
	}}
	for pattern, ok := range map[string]bool{`(?m)^\[exit code: 1\]$`: true, "second": true, "first": false} {
		m := play(t, "- expect: {lastToolResult: '"+pattern+"'}\n  text: yes it is\n")
		_, err := m.Generate(t.Context(), shown)
		if (err == nil) != ok {
			t.Errorf("%s: got %v", pattern, err)
		}
		if err != nil && !strings.Contains(err.Error(), "script.yaml:1: expected a tool result that matches") {
			t.Errorf("%s: got %v", pattern, err)
		}
	}
	m := play(t, "- expect: {lastToolResult: ''}\n  text: x\n")
	if _, err := m.Generate(t.Context(), llm.Request{Messages: []llm.Message{llm.UserText("x")}}); err == nil {
		t.Error("no result at all is as expected")
	}
}

func TestScriptIsCheckedWhenTheRowStarts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, want string }{
		"no list":              {"text: a\n", "script.yaml:1"},
		"an unknown key":       {"- text: a\n- txt: b\n", `script.yaml:2: not a step: json: unknown field "txt"`},
		"nothing to say":       {"- text: a\n\n- delayMs: 1\n", "script.yaml:3: a step has text, reasoning, tools or an error"},
		"an error that talks":  {"- error: {code: X}\n  text: a\n", "says nothing else"},
		"an error without one": {"- error: {message: a}\n", "an error has a code"},
		"a negative delay":     {"- text: a\n  delayMs: -1\n", "delayMs"},
		"a negative pause":     {"- text: a\n  pauseMs: -1\n", "pauseMs"},
		"a bad pattern":        {"- text: a\n  expect: {lastToolResult: '('}\n", "missing closing )"},
		"an empty expectation": {"- text: a\n  expect: {}\n", "lastToolResult"},
		"a nameless call":      {"- tools: [{arguments: {}}]\n", "a tool call has a name"},
		"a number as text":     {"- text: 1\n", "not a step"},
		"broken YAML":          {"- text: [\n", "script.yaml:"},
	} {
		if _, _, err := load(t, c.script); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	r, err := llmscript.New(llmscript.Params{Config: llmscript.Config{File: filepath.Join(t.TempDir(), "absent.yaml")}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Runner.Start(context.Background()); err == nil {
		t.Error("a row starts without its file")
	}
	for _, file := range []string{"", "script.yaml"} {
		if err := (llmscript.Config{File: file}).Validate(); err == nil || !strings.Contains(err.Error(), "file must be the absolute path of a script") {
			t.Errorf("the file %q: got %v", file, err)
		}
	}
}

func TestModule(t *testing.T) {
	t.Parallel()
	m := llmscript.Module()
	if m.Name() != "llm-script" || len(m.Provides()) != 1 || len(m.Needs()) != 0 || !m.Supports("win32") {
		t.Errorf("%q provides %v and needs %v", m.Name(), m.Provides(), m.Needs())
	}
}
