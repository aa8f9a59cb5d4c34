package llm

import (
	"crypto/rand"
	"fmt"
	"strings"
)

// Message is one contribution to a conversation.
type Message struct {
	ID      string  `json:"id"`
	Role    Role    `json:"role"`
	Content []Block `json:"content"`
	Source  Source  `json:"source"`
}

// Role says who speaks.
type Role string

// The roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool" // exactly one ToolResultBlock
)

// Source says where a message came from. Models do not see it.
type Source struct {
	Kind     SourceKind `json:"kind"`
	Provider string     `json:"provider,omitempty"` // of SourceModel
	Model    string     `json:"model,omitempty"`    // of SourceModel
	CallID   string     `json:"callId,omitempty"`   // of SourceTool
	Plugin   string     `json:"plugin,omitempty"`   // of SourcePlugin: the row's module
	Form     string     `json:"form,omitempty"`     // of SourcePlugin: instructions, snapshot, notice, ...
}

// SourceKind is the kind of a Source.
type SourceKind string

// The kinds of source.
const (
	SourceUser   SourceKind = "user"
	SourceModel  SourceKind = "model"
	SourceTool   SourceKind = "tool"
	SourcePlugin SourceKind = "plugin" // a row speaks in the user's role
)

// Block is a part of a message.
type Block struct {
	Type BlockType `json:"type"`
	// Text is a text, a piece of reasoning, or what a model sees of a tool's result.
	Text string `json:"text,omitempty"`
	// CallID is the call of a ToolCallBlock and of the ToolResultBlock that answers it.
	CallID string `json:"callId,omitempty"`
	// Name and Arguments are those of a tool call. Arguments is what the model wrote, be it JSON or not.
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments,omitempty"`
	IsError   bool   `json:"isError,omitempty"` // of a tool's result
}

// BlockType is the type of a Block.
type BlockType string

// The types of block.
const (
	TextBlock       BlockType = "text"
	ReasoningBlock  BlockType = "reasoning"
	ToolCallBlock   BlockType = "tool-call"
	ToolResultBlock BlockType = "tool-result"
)

// NewMessageID returns an id that no other message has.
func NewMessageID() string { return "message-" + uuid() }

// UserText returns a new message of the user's.
func UserText(text string) Message {
	return Message{
		ID: NewMessageID(), Role: RoleUser,
		Content: []Block{{Type: TextBlock, Text: text}}, Source: Source{Kind: SourceUser},
	}
}

// Message returns r as a new message of the assistant's.
func (r Response) Message() Message {
	return Message{
		ID: NewMessageID(), Role: RoleAssistant, Content: r.Content,
		Source: Source{Kind: SourceModel, Provider: r.Target.Provider, Model: r.Target.Model},
	}
}

// ToolResult returns a new message that answers a tool call.
func ToolResult(callID, text string, isError bool) Message {
	return Message{
		ID: NewMessageID(), Role: RoleTool,
		Content: []Block{{Type: ToolResultBlock, CallID: callID, Text: text, IsError: isError}},
		Source:  Source{Kind: SourceTool, CallID: callID},
	}
}

// Text returns the text blocks of m, joined.
func (m Message) Text() string {
	var b strings.Builder
	for _, block := range m.Content {
		if block.Type == TextBlock {
			b.WriteString(block.Text)
		}
	}
	return b.String()
}

// ToolCalls returns the tool calls in m, in order.
func (m Message) ToolCalls() []Block {
	var calls []Block
	for _, block := range m.Content {
		if block.Type == ToolCallBlock {
			calls = append(calls, block)
		}
	}
	return calls
}

// uuid returns a random UUID, version 4.
func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Interrupted returns r without its tool calls and without blocks that say nothing: what is left of a response that was
// cut off.
func (r Response) Interrupted() Response {
	var kept []Block
	for _, b := range r.Content {
		if b.Type != ToolCallBlock && b.Text != "" {
			kept = append(kept, b)
		}
	}
	r.Content = kept
	return r
}
