package agentloop

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strings"

	"dsh/modules/agent"
	"dsh/modules/llm"
	"dsh/modules/tools"
)

// told is what the model is told in a step besides the conversation.
type told struct {
	agent.Assembly
	target llm.Target
	tools  []llm.Tool
}

func (t *turn) assemble(ctx context.Context) (told, error) {
	target, err := t.model.Target(ctx, t.in.Model)
	if err != nil {
		return told{}, err
	}
	a, err := t.prompt.Assemble(ctx, agent.View{Session: t.s.Header(), Target: target})
	if err != nil {
		return told{}, &llm.Error{Code: agent.CodePrompt, Message: err.Error(), Err: err}
	}
	definitions := t.loop.tools.Definitions()
	slices.SortFunc(definitions, func(a, b tools.Definition) int { return cmp.Compare(a.Name, b.Name) })
	all := make([]llm.Tool, len(definitions))
	for i, d := range definitions {
		all[i] = llm.ToolOf(d)
	}
	return told{Assembly: a, target: target, tools: all}, nil
}

// surroundings returns the messages that say what the conversation does not say yet: the workspace's instructions, and
// the runtime context.
func (t *turn) surroundings(told told) []llm.Message {
	var messages []llm.Message
	if m, ok := t.instructions(); ok {
		messages = append(messages, m)
	}
	if m, ok := t.snapshot(told.Contexts); ok {
		messages = append(messages, m)
	}
	return messages
}

const (
	snapshotHead = "Current runtime context. This snapshot supersedes earlier runtime-context snapshots.\n\n"
	snapshotNone = "Current runtime context: none. Earlier runtime-context snapshots no longer apply."
)

var snapshotSource = llm.Source{Kind: llm.SourcePlugin, Plugin: "system-prompt", Form: "snapshot"}

// snapshot returns the message with the runtime context, unless the last one in the conversation is the same.
func (t *turn) snapshot(contexts string) (llm.Message, bool) {
	last, sent := t.last(snapshotSource)
	text := snapshotHead + contexts
	switch {
	case contexts == "" && !sent:
		return llm.Message{}, false
	case contexts == "":
		text = snapshotNone
	}
	return saying(text, snapshotSource), !sent || last != text
}

// last returns the last text from source in the conversation.
func (t *turn) last(source llm.Source) (text string, ok bool) {
	for _, n := range slices.Backward(t.s.Surface()) {
		if n.Message.Source == source {
			return n.Message.Text(), true
		}
	}
	return "", false
}

func saying(text string, source llm.Source) llm.Message {
	m := llm.UserText(strings.ToValidUTF8(text, "\uFFFD")) // as the log keeps it, so that it can be compared
	m.Source = source
	return m
}

func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
