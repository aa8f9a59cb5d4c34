// Package llm is the contract for calling a language model.
//
// A Model makes one call at a time out of a Request: it streams what the model says as it arrives and returns the whole
// as a Response. Conversations are Messages of Blocks; a session keeps them, and sends them again with each call. What
// goes wrong is an *Error with one of a few codes, after the model has done the retries that its row allows.
//
// Package llmtest holds the suite that every model passes.
package llm

import (
	"context"

	"dsh/module/key"
	"dsh/modules/tools"
)

// Key names the capability.
var Key = key.Of[Model]("llm")

// Model calls a language model. Its methods may be called concurrently.
type Model interface {
	// Target returns what a Request with this model name would be sent to; an empty name is the row's own. It makes no
	// call, but looks for everything that a call needs first: without a key the error is an *Error with the code
	// CodeMissingCredential that says where one was looked for.
	Target(ctx context.Context, model string) (Target, error)

	// Generate makes one call and returns the model's response when it is complete. Until then each piece of it goes to
	// r.Stream. A failure that may pass is tried again, as often as the row allows; r.Retrying is told before each wait.
	//
	// The end of ctx ends the call promptly, be it in the stream or in a wait, and nothing of it goes on: the error is an
	// *Error with the code CodeAborted that wraps the context's cause. With that, and only with that error, the Response
	// holds the text and the reasoning that had arrived in the last attempt, and no tool calls. Any other error that is
	// not r.Retrying's own is an *Error too, with a code that says what failed. Errors never contain the key.
	//
	// Neither the Request nor anything in it is changed. What it returns belongs to the caller.
	Generate(ctx context.Context, r Request) (Response, error)
}

// Target is where calls go.
type Target struct {
	Provider string // a short name for who serves the model
	Model    string
}

// Request is one call. Only Messages is required.
type Request struct {
	// Model is the name that the provider knows the model by; empty: the row's.
	Model  string
	System string // instructions that come before everything else
	// Messages is the conversation so far, at least one message. Each tool call in it is answered by a tool result before
	// the next message of another role.
	Messages []Message
	Tools    []Tool // what the model may call
	// MaxTokens bounds the response; 0: whatever the provider does by itself.
	MaxTokens int
	// Temperature is left to the provider if nil.
	Temperature *float64
	// ReasoningEffort is how hard to think, in the provider's words; empty: as the provider does by itself.
	ReasoningEffort string

	// Stream, if not nil, is called with each piece of the response, in order, from the goroutine that called Generate.
	Stream func(Delta)
	// Retrying, if not nil, is called from the goroutine that called Generate before it waits to try again. What Stream
	// has been given so far is void then. An error gives the call up, and is what Generate returns.
	Retrying func(Retry) error
}

// Tool is a tool as a model is told about it.
type Tool struct {
	Name        string
	Description string
	Parameters  *tools.Schema
}

// ToolOf returns what a model is told about d.
func ToolOf(d tools.Definition) Tool {
	return Tool{Name: d.Name, Description: d.Description, Parameters: d.Parameters}
}

// Delta is a piece of a response. Joined by Index, the pieces are the blocks of its Content.
type Delta struct {
	Index int       // of the block
	Type  BlockType // TextBlock, ReasoningBlock or ToolCallBlock
	Text  string    // of the block; of a tool call the arguments
	// CallID and Name are those of a tool call, each in its first piece and empty in the others.
	CallID, Name string
}

// Retry is a failed attempt that will be followed by another.
type Retry struct {
	Attempt    int // how many retries this one makes
	MaxRetries int
	DelayMs    int64 // how long it will wait
	Failure    *Error
}

// Response is what a model said.
type Response struct {
	// Content is in the order in which its blocks began: reasoning, text and tool calls. Every tool call has a CallID of
	// its own. With FinishMaxTokens there are no tool calls: they are incomplete.
	Content []Block
	Finish  Finish
	Usage   *Usage // nil when the provider does not say
	Target  Target
}

// Finish says why a model stopped.
type Finish string

// The reasons to stop.
const (
	FinishStop      Finish = "stop"
	FinishToolCalls Finish = "tool-calls" // Content has at least one
	FinishMaxTokens Finish = "max-tokens"
)

// Usage counts tokens. The buckets do not overlap, except that reasoning is part of the output.
type Usage struct {
	InputTokens      int64 `json:"inputTokens"` // without what came from the provider's cache
	OutputTokens     int64 `json:"outputTokens"`
	CacheReadTokens  int64 `json:"cacheReadTokens,omitempty"`
	CacheWriteTokens int64 `json:"cacheWriteTokens,omitempty"`
	ReasoningTokens  int64 `json:"reasoningTokens,omitempty"`
}
