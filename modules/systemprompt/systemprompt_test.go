package systemprompt_test

import (
	"strings"
	"testing"

	"dsh/modules/agent"
	"dsh/modules/agent/agenttest"
	"dsh/modules/llm"
	"dsh/modules/session"
	"dsh/modules/systemprompt"
)

func newPrompt(t testing.TB, c systemprompt.Config) agent.Prompt {
	t.Helper()
	r, err := systemprompt.New(systemprompt.Params{Config: c})
	if err != nil {
		t.Fatal(err)
	}
	return r.Prompt
}

func TestPromptKeepsItsPromises(t *testing.T) {
	agenttest.RunPrompt(t, func(t testing.TB) agent.Prompt {
		return newPrompt(t, systemprompt.Config{IncludeRuntimeContext: true})
	})
}

func TestThePersonaSaysWhichModelAndWhere(t *testing.T) {
	t.Parallel()
	view := agent.View{Session: session.Header{CWD: "/w/{{model}}"}, Target: llm.Target{Provider: "p", Model: "m"}}
	for persona, want := range map[string]string{
		"You are {{model}} of {{provider}} in {{cwd}}.": "You are m of p in /w/{{model}}.",
		"{{ is text":          "{{ is text",
		"so is }} and {this}": "so is }} and {this}",
		"":                    "",
	} {
		c := systemprompt.Config{Persona: persona}
		if err := c.Validate(); err != nil {
			t.Errorf("%q: %v", persona, err)
			continue
		}
		got, err := newPrompt(t, c).Assemble(t.Context(), view)
		if err != nil || got.System != want {
			t.Errorf("%q: got %q, %v", persona, got.System, err)
		}
	}
}

func TestAPersonaThatNamesNothingIsRefused(t *testing.T) {
	t.Parallel()
	for persona, says := range map[string]string{
		"{{modle}}":   `unknown prompt variable "{{modle}}"; registered variables: cwd, model, provider`,
		"{{ model }}": "malformed prompt variable reference {{ model }}",
		"{{}}":        "malformed",
	} {
		err := systemprompt.Config{Persona: persona}.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), "persona has ") || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v", persona, err)
		}
	}
}

func TestTheIdentityComesFirstAndContextsCanBeLeftOut(t *testing.T) {
	t.Parallel()
	c := systemprompt.DefaultConfig()
	c.Persona, c.IncludeRuntimeContext = "persona", false
	p := newPrompt(t, c)
	if _, err := agent.Add(p, []agent.Section{agent.Plain("tool:x", agent.OrderBash, "x")}, []agent.Section{agent.Plain("y", 0, "y")}); err != nil {
		t.Fatal(err)
	}
	want := agent.Assembly{System: "You are an AI agent powered by DeepSeek Harness.\n\npersona\n\nx"}
	if got, err := p.Assemble(t.Context(), agent.View{}); got != want || err != nil {
		t.Errorf("got %+v, %v", got, err)
	}
}
