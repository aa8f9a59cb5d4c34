package session

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"dsh/modules/llm"
)

// WriteText writes l for people: a line or a few for each event, with control characters made visible.
func (l Log) WriteText(w io.Writer) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s in %s, %s\n", l.Header.ID, visible(l.Header.CWD), l.Header.CreatedAt.Local().Format("2006-01-02 15:04:05"))
	for _, e := range l.Events {
		fmt.Fprintf(b, "%s %s\n", e.Time.Local().Format("15:04:05"), describe(e.Data))
	}
	if l.Torn > 0 {
		fmt.Fprintf(b, "(%d bytes after this are incomplete)\n", l.Torn)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func describe(d Data) string {
	switch d := d.(type) {
	case *TurnStart:
		return fmt.Sprintf("turn %d", d.Turn)
	case *TurnEnd:
		return fmt.Sprintf("end of turn %d: %s", d.Turn, d.Reason.describe())
	case *StepStart:
		return fmt.Sprintf("step %d", d.Step)
	case *StepEnd:
		return fmt.Sprintf("end of step %d", d.Step)
	case *UserMessage:
		return "user" + blocks(d.Message)
	case *AssistantMessage:
		text := "assistant" + blocks(d.Message)
		if d.Interrupted {
			text += "\n    (interrupted)"
		}
		if d.Usage != nil {
			text += fmt.Sprintf("\n    (%d tokens in, %d from the cache, %d out)", d.Usage.InputTokens, d.Usage.CacheReadTokens, d.Usage.OutputTokens)
		}
		return text
	case *ToolCall:
		return fmt.Sprintf("call %s %s%s", visible(d.CallID), visible(d.Name), indented(d.Arguments))
	case *ToolResult:
		text := "result of " + visible(d.Message.Source.CallID)
		if d.Error != nil {
			text += " (" + visible(d.Error.Code) + ")"
		}
		return text + blocks(d.Message)
	case *LLMRetry:
		return fmt.Sprintf("retry %d of %d in %d ms: %s", d.Retry, d.MaxRetries, d.DelayMs, failure(d.Failure))
	case *SandboxMode:
		return "sandbox mode " + visible(string(d.Mode))
	case *ApprovalAsked:
		return fmt.Sprintf("approval asked for %s: %s", visible(d.ToolName), visible(d.Reason))
	case *ApprovalDecided:
		return "approval " + visible(string(d.Outcome))
	case *CompactionStart:
		return "compaction"
	case *CompactionSummary:
		return "summary of what came before" + blocks(d.Message)
	case *CompactionEnd:
		if d.Error != nil {
			return "end of compaction: " + failure(d.Error)
		}
		return "end of compaction"
	}
	return visible(string(d.Type()))
}

func (r Reason) describe() string {
	switch {
	case r.Error != nil:
		return failure(r.Error)
	case r.Abort != nil:
		return string(r.Kind) + " by " + visible(r.Abort.Kind)
	}
	return visible(string(r.Kind))
}

func failure(e *llm.Error) string {
	if e == nil {
		return "unknown"
	}
	return visible(e.Code + ": " + e.Message)
}

func blocks(m llm.Message) string {
	var b strings.Builder
	for _, block := range m.Content {
		switch block.Type {
		case llm.ReasoningBlock:
			b.WriteString("\n    (reasoning)" + indented(block.Text))
		case llm.ToolCallBlock: // shown when it is made
		default:
			b.WriteString(indented(block.Text))
		}
	}
	return b.String()
}

func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("\n    " + visible(strings.TrimSuffix(line, "\n")))
	}
	return b.String()
}

// visible returns s with what a terminal would obey shown as an escape.
func visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == '\t' || unicode.IsGraphic(r) && !unicode.Is(unicode.Bidi_Control, r) {
			b.WriteRune(r)
		} else {
			quoted := fmt.Sprintf("%+q", r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}
