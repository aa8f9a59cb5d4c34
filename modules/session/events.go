package session

import (
	"encoding/json"

	"dsh/modules/approval"
	"dsh/modules/llm"
	"dsh/modules/sandbox"
)

// Type is the type of an event.
type Type string

// The types of events, each with its Data.
const (
	TypeTurnStart         Type = "turn/start"
	TypeTurnEnd           Type = "turn/end"
	TypeStepStart         Type = "step/start"
	TypeStepEnd           Type = "step/end"
	TypeUserMessage       Type = "user/message"
	TypeAssistantMessage  Type = "assistant/message"
	TypeToolCall          Type = "tool/call"
	TypeToolResult        Type = "tool/result"
	TypeLLMRetry          Type = "llm/retry"
	TypeSandboxMode       Type = "sandbox/mode"
	TypeApprovalAsked     Type = "approval/asked"
	TypeApprovalDecided   Type = "approval/decided"
	TypeCompactionStart   Type = "compaction/start"
	TypeCompactionSummary Type = "compaction/summary"
	TypeCompactionEnd     Type = "compaction/end"
)

// Data is what an event says. It is a pointer to one of the types below.
type Data interface{ Type() Type }

// TurnStart begins a turn: the agent works until it has nothing left to do. Turns count from 1.
type TurnStart struct {
	Turn int `json:"turn"`
}

// TurnEnd ends the open turn.
type TurnEnd struct {
	Turn   int    `json:"turn"`
	Reason Reason `json:"reason"`
}

// Reason is why a turn ended.
type Reason struct {
	Kind  EndKind    `json:"kind"`
	Abort *Abort     `json:"reason,omitempty"` // of EndAborted
	Error *llm.Error `json:"error,omitempty"`  // of EndError
}

// EndKind is the kind of a Reason.
type EndKind string

// The ways in which a turn ends.
const (
	EndCompleted   EndKind = "completed"
	EndAborted     EndKind = "aborted"
	EndBlocked     EndKind = "blocked"
	EndError       EndKind = "error"
	EndMaxTokens   EndKind = "max-tokens"
	EndInterrupted EndKind = "interrupted" // the host died; only a repair says so
)

// Abort is who ended a turn.
type Abort struct {
	Kind   string `json:"kind"` // user, parent, hook, timeout, disposed
	Reason string `json:"reason,omitempty"`
}

// StepStart begins a step of the open turn: one response of the model, and the tools that it calls. Steps count from 1 in
// each turn.
type StepStart struct {
	Turn int `json:"turn"`
	Step int `json:"step"`
}

// StepEnd ends the open step, whose tool calls are all answered.
type StepEnd struct {
	Turn int `json:"turn"`
	Step int `json:"step"`
}

// UserMessage is a message in the user's role. It may come at any time at which no tool call is unanswered. Its JSON form
// is the message.
type UserMessage struct{ Message llm.Message }

// MarshalJSON returns the message.
func (m UserMessage) MarshalJSON() ([]byte, error) { return encode(m.Message) }

// UnmarshalJSON reads the message.
func (m *UserMessage) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &m.Message) }

// AssistantMessage is the model's response in the open step, at most one in each. One without content keeps the usage
// alone, and the model does not see it.
type AssistantMessage struct {
	Turn        int         `json:"turn"`
	Step        int         `json:"step"`
	Message     llm.Message `json:"message"`
	Usage       *llm.Usage  `json:"usage,omitempty"`
	Interrupted bool        `json:"interrupted,omitempty"` // the beginning of a response; it has no tool calls
}

// ToolCall says that a call from the open step's response is being made.
type ToolCall struct {
	Turn      int    `json:"turn"`
	Step      int    `json:"step"`
	CallID    string `json:"callId"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // as the model wrote them
}

// ToolResult answers a tool call of the open step: one that has a ToolCall, unless its error is CodeToolNotStarted.
type ToolResult struct {
	Turn    int         `json:"turn"`
	Step    int         `json:"step"`
	Message llm.Message `json:"message"`
	Error   *ToolError  `json:"error,omitempty"`
	// Meta is the tool's value, or what else its row wants to keep; the model does not see it.
	Meta json.RawMessage `json:"meta,omitempty"`
}

// ToolError is how a tool call failed. What the model is told is in the message.
type ToolError struct {
	Name string `json:"name"`
	Code string `json:"code"`
}

// The codes of results that a repair writes.
const (
	CodeToolNotStarted     = "TOOL_NOT_STARTED"
	CodeToolOutcomeUnknown = "TOOL_OUTCOME_UNKNOWN"
)

// LLMRetry says that the model's call in the open step failed and will be made again after a wait.
type LLMRetry struct {
	RetryID    string     `json:"retryId"` // the same for all retries of one call
	Turn       int        `json:"turn"`
	Step       int        `json:"step"`
	Provider   string     `json:"provider"`
	Retry      int        `json:"retry"` // from 1
	MaxRetries int        `json:"maxRetries"`
	DelayMs    int64      `json:"delayMs"`
	Failure    *llm.Error `json:"failure"`
}

// SandboxMode says that the session's commands are confined to this mode from now on.
type SandboxMode struct {
	Mode sandbox.Mode `json:"mode"`
}

// ApprovalAsked is a question to somebody with authority, in an open turn.
type ApprovalAsked struct {
	ID       string `json:"id"`
	ToolName string `json:"toolName"`
	CallID   string `json:"callId,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// ApprovalDecided is the answer to an ApprovalAsked.
type ApprovalDecided struct {
	ID      string           `json:"id"`
	Outcome approval.Outcome `json:"outcome"`
}

// CompactionStart says that a part of the conversation is about to be replaced by a summary. One is open at a time.
type CompactionStart struct {
	CompactionID string `json:"compactionId"`
	Turn         *int   `json:"turn"` // nil: outside of a turn
}

// CompactionSummary replaces a part of the conversation: the messages from the one that the event Start gave to the one
// that End gave, in the order of Messages. The part does not come between a tool call and its result. Message stands in
// its place, as if this event had given it.
type CompactionSummary struct {
	CompactionID string      `json:"compactionId"`
	Shadowed     Range       `json:"shadowedRange"`
	Message      llm.Message `json:"message"` // in the user's role
	Provider     string      `json:"provider,omitempty"`
	Model        string      `json:"model,omitempty"`
	Usage        *llm.Usage  `json:"usage,omitempty"`
}

// Range names two events by their seq.
type Range struct {
	Start int64 `json:"start"`
	End   int64 `json:"end"`
}

// CompactionEnd ends the open compaction.
type CompactionEnd struct {
	CompactionID string     `json:"compactionId"`
	Error        *llm.Error `json:"error,omitempty"`
}

// Unknown is an event of a type that this package does not know. It is read and never written.
type Unknown struct {
	Of  Type
	Raw json.RawMessage
}

// Type returns TypeTurnStart.
func (*TurnStart) Type() Type { return TypeTurnStart }

// Type returns TypeTurnEnd.
func (*TurnEnd) Type() Type { return TypeTurnEnd }

// Type returns TypeStepStart.
func (*StepStart) Type() Type { return TypeStepStart }

// Type returns TypeStepEnd.
func (*StepEnd) Type() Type { return TypeStepEnd }

// Type returns TypeUserMessage.
func (*UserMessage) Type() Type { return TypeUserMessage }

// Type returns TypeAssistantMessage.
func (*AssistantMessage) Type() Type { return TypeAssistantMessage }

// Type returns TypeToolCall.
func (*ToolCall) Type() Type { return TypeToolCall }

// Type returns TypeToolResult.
func (*ToolResult) Type() Type { return TypeToolResult }

// Type returns TypeLLMRetry.
func (*LLMRetry) Type() Type { return TypeLLMRetry }

// Type returns TypeSandboxMode.
func (*SandboxMode) Type() Type { return TypeSandboxMode }

// Type returns TypeApprovalAsked.
func (*ApprovalAsked) Type() Type { return TypeApprovalAsked }

// Type returns TypeApprovalDecided.
func (*ApprovalDecided) Type() Type { return TypeApprovalDecided }

// Type returns TypeCompactionStart.
func (*CompactionStart) Type() Type { return TypeCompactionStart }

// Type returns TypeCompactionSummary.
func (*CompactionSummary) Type() Type { return TypeCompactionSummary }

// Type returns TypeCompactionEnd.
func (*CompactionEnd) Type() Type { return TypeCompactionEnd }

// Type returns the type that the log gives.
func (u *Unknown) Type() Type { return u.Of }
