package llmopenai_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/modules/llm"
	"dsh/modules/llmopenai"
	"dsh/modules/tools"
)

// clear unsets what the machine may have set.
func clear(t *testing.T) {
	for _, name := range []string{"DEEPSEEK_API_KEY", "DEEPSEEK_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL"} {
		t.Setenv(name, "")
	}
}

func TestKeyAndAddressAreOfOneFamily(t *testing.T) {
	for name, c := range map[string]struct {
		env    map[string]string
		config llmopenai.Config
		want   llm.Target
		code   string
		says   string
	}{
		"nothing":             {nil, llmopenai.Config{}, llm.Target{}, llm.CodeMissingCredential, "DEEPSEEK_API_KEY or OPENAI_API_KEY"},
		"deepseek":            {map[string]string{"DEEPSEEK_API_KEY": "k"}, llmopenai.Config{}, llm.Target{Provider: "deepseek", Model: "deepseek-v4-flash"}, "", ""},
		"both":                {map[string]string{"DEEPSEEK_API_KEY": "k", "OPENAI_API_KEY": "o"}, llmopenai.Config{Model: "m"}, llm.Target{Provider: "deepseek", Model: "m"}, "", ""},
		"openai":              {map[string]string{"OPENAI_API_KEY": "k"}, llmopenai.Config{Model: "m"}, llm.Target{Provider: "openai", Model: "m"}, "", ""},
		"openai, no model":    {map[string]string{"OPENAI_API_KEY": "k"}, llmopenai.Config{}, llm.Target{}, llm.CodeInvalidRequest, "no model is named"},
		"its own address":     {map[string]string{"DEEPSEEK_API_KEY": "k", "DEEPSEEK_BASE_URL": "http://h:1/v1/"}, llmopenai.Config{}, llm.Target{}, llm.CodeInvalidRequest, "http://h:1/v1"},
		"the other's address": {map[string]string{"DEEPSEEK_API_KEY": "k", "OPENAI_BASE_URL": "http://h:1"}, llmopenai.Config{}, llm.Target{Provider: "deepseek", Model: "deepseek-v4-flash"}, "", ""},
		"a bad address":       {map[string]string{"DEEPSEEK_API_KEY": "k", "DEEPSEEK_BASE_URL": "http://u:p@h"}, llmopenai.Config{Model: "m"}, llm.Target{}, llm.CodeInvalidRequest, "DEEPSEEK_BASE_URL must be"},
		"a named variable":    {map[string]string{"MY_KEY": "k", "OPENAI_API_KEY": "o"}, llmopenai.Config{APIKeyEnv: "MY_KEY", Provider: "p"}, llm.Target{Provider: "p", Model: "deepseek-v4-flash"}, "", ""},
		"a named, absent one": {map[string]string{"OPENAI_API_KEY": "o"}, llmopenai.Config{APIKeyEnv: "MY_KEY"}, llm.Target{}, llm.CodeMissingCredential, "MY_KEY"},
		"no key at home":      {nil, llmopenai.Config{BaseURL: "http://localhost:11434/v1", Model: "m"}, llm.Target{Provider: "localhost:11434", Model: "m"}, "", ""},
		"a key of two lines":  {map[string]string{"DEEPSEEK_API_KEY": "a\nb"}, llmopenai.Config{}, llm.Target{}, llm.CodeInvalidCredential, "DEEPSEEK_API_KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			clear(t)
			t.Setenv("MY_KEY", "")
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			c.config.StreamIdleTimeoutMs = 1000
			got, err := start(t, c.config).Target(t.Context(), "")
			if c.code != "" {
				if e := wantCode(t, err, c.code); !strings.Contains(e.Message, c.says) {
					t.Errorf("the message is %q, want %q", e.Message, c.says)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("got %+v, %v, want %+v", got, err, c.want)
			}
		})
	}
}

func TestKeyIsSentAndNeverSaid(t *testing.T) {
	clear(t)
	const key = "sk-0123456789abcdef"
	t.Setenv("OPENAI_API_KEY", " "+key+"\n")
	s := serve(t, status(401, `{"error":{"message":"Incorrect API key provided: `+key+`"}}`, "X-Request-Id", "r-"+key))
	_, err := start(t, config(s.url)).Generate(t.Context(), ask())
	e := wantCode(t, err, llm.CodeAuth)
	if strings.Contains(e.Message+e.RequestID, key) || e.Err != nil && strings.Contains(e.Err.Error(), key) {
		t.Errorf("the key is in the error %+v", e)
	}
	if got := s.headers[0].Get("Authorization"); got != "Bearer "+key {
		t.Errorf("the server was shown %q", got)
	}
}

func TestKeysAreKeptFromCommandsWhileTheRowRuns(t *testing.T) {
	t.Parallel()
	w := &withholding{}
	c := config("http://127.0.0.1:1")
	c.APIKeyEnv = "MY_KEY"
	_, stop := startWith(t, c, w)
	for _, name := range []string{"MY_KEY", "DEEPSEEK_API_KEY", "OPENAI_API_KEY"} {
		if !slices.Contains(w.names, name) {
			t.Errorf("%s is not withheld", name)
		}
	}
	stop()
	if w.names != nil {
		t.Errorf("after the stop %v are withheld", w.names)
	}
}

func TestRequestIsWhatServersUnderstand(t *testing.T) {
	t.Parallel()
	s := serve(t, stream(content("x"), finish("stop"), done))
	zero := 0.0
	_, err := start(t, config(s.url)).Generate(t.Context(), llm.Request{
		System: "be brief", MaxTokens: 5, Temperature: &zero, ReasoningEffort: "high",
		Messages: []llm.Message{
			llm.UserText("list <files>"),
			{Role: llm.RoleAssistant, Content: []llm.Block{
				{Type: llm.ReasoningBlock, Text: "hm"}, {Type: llm.ToolCallBlock, CallID: "c", Name: "bash", Arguments: `{"a":`},
			}},
			llm.ToolResult("c", "", false),
		},
		Tools: []llm.Tool{{Name: "bash", Description: "runs", Parameters: &tools.Schema{Type: "object", Closed: true}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := s.bodies[0]
	if v, _ := got["temperature"].(float64); v > 1e-30 {
		t.Errorf("the temperature is %v", got["temperature"])
	}
	delete(got, "temperature")
	want := map[string]any{
		"model": "m", "stream": true, "stream_options": map[string]any{"include_usage": true}, "max_tokens": 5.0, "reasoning_effort": "high",
		"messages": []any{
			map[string]any{"role": "system", "content": "be brief"},
			map[string]any{"role": "user", "content": "list <files>"},
			map[string]any{"role": "assistant", "content": "", "reasoning_content": "hm", "tool_calls": []any{map[string]any{
				"id": "c", "type": "function", "function": map[string]any{"name": "bash", "arguments": `{"a":`},
			}}},
			map[string]any{"role": "tool", "tool_call_id": "c", "content": "(no output)"},
		},
		"tools": []any{map[string]any{"type": "function", "function": map[string]any{
			"name": "bash", "description": "runs",
			"parameters": map[string]any{"type": "object", "properties": map[string]any{}, "additionalProperties": false},
		}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestConfigurationThatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	good := config("https://h/v1")
	for key, change := range map[string]func(*llmopenai.Config){
		"baseURL":             func(c *llmopenai.Config) { c.BaseURL = "h:8080" },
		"apiKeyEnv":           func(c *llmopenai.Config) { c.APIKeyEnv = "sk-123" },
		"streamIdleTimeoutMs": func(c *llmopenai.Config) { c.StreamIdleTimeoutMs = 0 },
		"maxRetries":          func(c *llmopenai.Config) { c.MaxRetries = -1 },
	} {
		c := good
		change(&c)
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), key) {
			t.Errorf("%s: got %v", key, err)
		}
		if _, err := llmopenai.New(llmopenai.Params{Config: c}); err == nil {
			t.Errorf("%s: New takes it", key)
		}
	}
	if err := errors.Join(good.Validate(), llmopenai.DefaultConfig().Validate()); err != nil {
		t.Error(err)
	}
	m := llmopenai.Module()
	if m.Name() != "llm-openai" || len(m.Provides()) != 1 || len(m.Needs()) != 1 || !m.Supports("win32") {
		t.Errorf("%q provides %v and needs %v", m.Name(), m.Provides(), m.Needs())
	}
}

// TestWhatCannotSucceedSaysWhatToSet has calls that no retry would mend.
func TestWhatCannotSucceedSaysWhatToSet(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		key     string
		base    bool // the row says where the API is, not a variable
		want    []string
	}{
		"a wrong key":   {status(401, `{"error":{"message":"Incorrect API key"}}`), "sk-test", false, []string{"Incorrect API key", "OPENAI_API_KEY"}},
		"no key":        {status(401, `{"error":{"message":"a key is needed"}}`), "", true, []string{"a key is needed", "apiKeyEnv in the row llm"}},
		"a wrong model": {status(404, `{"error":{"message":"no such model"}}`), "sk-test", false, []string{`"some-model"`, "--model", "OPENAI_BASE_URL", "baseURL in the row llm"}},
		"another host":  {status(404, "<html>nginx</html>"), "sk-test", true, []string{"http://127.0.0.1:", "baseURL in the row llm"}},
		"nobody":        {nil, "sk-test", false, []string{"connection refused", "OPENAI_BASE_URL"}},
	} {
		t.Run(name, func(t *testing.T) {
			clear(t)
			t.Setenv("OPENAI_API_KEY", c.key)
			url := "http://127.0.0.1:9"
			if c.handler != nil {
				url = serve(t, c.handler).url
			}
			cfg := config("")
			cfg.Model, cfg.MaxRetries, cfg.BaseURL = "some-model", 0, url
			if !c.base {
				cfg.BaseURL = ""
				t.Setenv("OPENAI_BASE_URL", url)
			}
			_, err := start(t, cfg).Generate(t.Context(), ask())
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
		})
	}
}
