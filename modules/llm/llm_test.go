package llm_test

import (
	"testing"

	"dsh/internal/testkit"
	"dsh/modules/llm"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestRefusalsAreReadFromProvidersWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"This model's maximum context length is 8192 tokens. However, you requested 9000": llm.CodeContextWindow,
		`{"error":{"code":"context_length_exceeded"}}`:                                    llm.CodeContextWindow,
		"prompt is too long: 210000 tokens > 200000 maximum":                              llm.CodeContextWindow,
		"the request exceeds the available context size":                                  llm.CodeContextWindow,
		"You exceeded your current quota, please check your plan":                         llm.CodeQuota,
		"Insufficient Balance": llm.CodeQuota,
		"Rate limit reached":   "", "context": "", "": "",
	} {
		if got := llm.RefusedText(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestInterruptedResponseKeepsWhatCanBeShownAgain(t *testing.T) {
	t.Parallel()
	r := llm.Response{Content: []llm.Block{
		{Type: llm.ReasoningBlock, Text: "hm"}, {Type: llm.TextBlock}, {Type: llm.ToolCallBlock, CallID: "a"}, {Type: llm.TextBlock, Text: "x"},
	}}
	got := r.Interrupted().Content
	if len(got) != 2 || got[0].Text != "hm" || got[1].Text != "x" || len(r.Content) != 4 {
		t.Errorf("got %v of %v", got, r.Content)
	}
}
