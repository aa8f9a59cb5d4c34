package agentloop

import (
	"encoding/json"
	"slices"

	"dsh/modules/llm"
	"dsh/modules/session"
)

// A model's tokens cannot be counted without it. These estimates are what the conversation is measured by until the
// provider has told how many there really were.

// units is the length of text in UTF-16, which is what the estimates were made for.
func units(text string) int {
	n := 0
	for _, r := range text {
		n++
		if r > 0xFFFF {
			n++
		}
	}
	return n
}

func quarter(text string) int { return (units(text) + 3) / 4 }

func blockTokens(b llm.Block) int {
	switch b.Type {
	case llm.ToolCallBlock:
		return quarter(b.Name) + quarter(b.Arguments) + 4
	case llm.ToolResultBlock:
		return quarter(b.Text) + 4 + 4
	}
	return quarter(b.Text) + 4
}

func messageTokens(m llm.Message) int {
	n := 4
	for _, b := range m.Content {
		n += blockTokens(b)
	}
	return n
}

func nodesTokens(nodes []session.Node) int {
	n := 0
	for _, node := range nodes {
		n += messageTokens(node.Message)
	}
	return n
}

// meter remembers what the tools took: their schemas are long, and rarely others than before.
type meter struct {
	tools  []llm.Tool
	tokens int
}

func (m *meter) headTokens(told told) int {
	if !slices.Equal(told.tools, m.tools) {
		m.tools, m.tokens = told.tools, 0
		if len(told.tools) > 0 {
			raw, _ := json.Marshal(told.tools) // schemas are checked when they are registered
			m.tokens = quarter(string(raw)) + 4
		}
	}
	n := m.tokens
	if told.System != "" {
		n += quarter(told.System) + 4
	}
	return n
}

// estimate returns how many tokens the next call would send: what the provider counted at the last response that is still
// in the conversation, and the rest estimated; never less than everything estimated.
func (t *turn) estimate(told told) int {
	nodes := t.s.Surface()
	all := t.meter.headTokens(told) + nodesTokens(nodes)
	for _, e := range slices.Backward(t.s.Events()) {
		said, ok := e.Data.(*session.AssistantMessage)
		if !ok || said.Usage == nil {
			continue
		}
		i := slices.IndexFunc(nodes, func(n session.Node) bool { return n.Seq == e.Seq })
		if i < 0 {
			break
		}
		u := said.Usage
		counted := int(u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens + u.OutputTokens)
		return max(all, counted+nodesTokens(nodes[i+1:]))
	}
	return all
}
