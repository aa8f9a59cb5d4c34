// Package tools is the contract for tools: named operations with described arguments and results, which a model or a
// person calls through one pipeline.
//
// A call is decoded and validated, admitted by ordered hooks, executed, its value validated, shown to observers of the
// result, and rendered to text. Whatever goes wrong on the way, a panic in the tool included, is a Result with an Error;
// Execute itself does not fail.
//
// Package toolstest holds the suite that every registry passes.
package tools

import (
	"context"
	"encoding/json"
	"io"

	"dsh/module/key"
)

// Key names the capability.
var Key = key.Of[Registry]("tools")

// Registry holds the tools of a composition. Its methods may be called concurrently.
type Registry interface {
	// Register adds a tool; undo removes it, and nothing else, however often it is called. A name that is taken, a schema
	// outside of the subset (a *SchemaError), or a missing part is an error. Calls that have begun are not affected.
	Register(d Definition) (undo func(), err error)
	// Definitions returns the registered tools in order of registration.
	Definitions() []Definition
	// Execute carries one call through the pipeline. When the context has ended before the tool is reached, and nobody
	// refused the call, the Result is an Error with code ABORTED_BEFORE_DISPATCH. When it ends later the tool is told and waited for, and the Result is an
	// Error with code ABORTED, unless the tool failed for a reason of its own.
	Execute(ctx context.Context, e Execution) Result
	// BeforeExecute adds a hook that may refuse a call, in order of registration; the first that does not allow decides.
	// Hooks are asked about calls of tools that exist, with arguments that are valid.
	BeforeExecute(h BeforeHook) (undo func())
	// AfterExecute adds a hook that sees the result of each executed or denied call, in order of registration, and may
	// replace or block it.
	AfterExecute(h AfterHook) (undo func())
}

// Definition is one tool.
type Definition struct {
	Name        string
	Description string
	Parameters  *Schema // an object; unless it is Closed, arguments that it does not name are passed through
	Output      *Schema // of the value that Execute returns
	// Execute does the work. Arguments have been validated. The value is marshalled to JSON, so its strings are UTF-8, and
	// what JSON can not hold is a failure; an *Error keeps its code, any other error gets INTERNAL.
	Execute func(ctx context.Context, e Execution) (value any, err error)
	// Render turns a valid value into the text that a model sees.
	Render func(value json.RawMessage) (string, error)
	// Parallel reports whether a call may overlap others; nil: never.
	Parallel func(arguments json.RawMessage) bool
}

// Execution is one call.
type Execution struct {
	CallID    string
	Name      string
	Arguments json.RawMessage // empty: {}. Each hook and the tool get a copy of their own
	Session   *SessionRef     // nil outside of a session
	// Stdin is offered to tools that run something; only Go callers set it.
	Stdin io.Reader
	// Progress, if not nil, is called with output as it arrives, each stream from a goroutine of its own. The Result is
	// complete without it.
	Progress func(stream string, p []byte)
}

// SessionRef is the session that a call belongs to.
type SessionRef struct {
	ID  string
	CWD string // absolute
}

// Result is how a call went: a Value with its Content, or an Error with its Content.
type Result struct {
	Content string          // what a model sees
	Value   json.RawMessage // the tool's canonical output; nil on an error
	Error   *Error
}

// Error is a failed call.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Codes of errors. Tools may have their own.
const (
	CodeInvalidArgs   = "INVALID_ARGS"
	CodeInvalidOutput = "INVALID_TOOL_OUTPUT"
	CodeUnknownTool   = "UNKNOWN_TOOL"
	CodeDenied        = "DENIED"
	CodeAborted       = "ABORTED"
	CodeAbortedBefore = "ABORTED_BEFORE_DISPATCH"
	CodeWorkdir       = "WORKDIR"
	CodeInternal      = "INTERNAL"
)

// Decision is what a BeforeHook decides.
type Decision struct {
	Verdict Verdict
	Reason  string // of a denial, or what to ask about
}

// Verdict is the kind of a Decision. The zero value allows.
type Verdict int

// The verdicts.
const (
	Allow Verdict = iota
	Deny
	Ask // allowed if somebody with authority says so; without such a somebody, denied
)

// BeforeHook decides on a call before it is executed. An error is a final failure of the call.
type BeforeHook func(ctx context.Context, e Execution) (Decision, error)

// AfterHook sees a call's result and returns the result to go on with: another Content; another Value, which is
// validated and rendered again; or an Error, which blocks the result, with the Content for the model, if there is any. A
// failed call stays failed. An error of the hook is a final failure of the call.
type AfterHook func(ctx context.Context, e Execution, r Result) (Result, error)
