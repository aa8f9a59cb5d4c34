package llm

import (
	"context"
	"strings"
)

// Error is a call that failed. Its JSON form is what a session log keeps of it.
type Error struct {
	Message string `json:"message"`
	Code    string `json:"code"`
	Status  int    `json:"status,omitempty"` // of the HTTP response, if there was one
	// RetryAfterMs is how long the provider asks to wait; 0 when it does not.
	RetryAfterMs int64  `json:"providerRetryAfterMs,omitempty"`
	RequestID    string `json:"requestId,omitempty"` // the provider's name for the call

	Err error `json:"-"` // the cause, if there is one in Go
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// The codes of errors. A status that has none of its own is HTTP_ and the status.
const (
	CodeMissingCredential = "MISSING_CREDENTIAL"      // no key was found
	CodeInvalidCredential = "INVALID_CREDENTIAL"      // the key cannot be one
	CodeAuth              = "AUTH"                    // the provider refuses the key
	CodeRateLimit         = "RATE_LIMIT"              // too many calls; passes
	CodeQuota             = "QUOTA"                   // nothing left to spend; does not pass
	CodeServer            = "SERVER"                  // the provider failed or is overloaded
	CodeTimeout           = "TIMEOUT"                 // the stream stood still
	CodeTransport         = "TRANSPORT"               // the connection failed
	CodeContextWindow     = "CONTEXT_WINDOW_EXCEEDED" // the conversation is too long for the model
	CodeInvalidRequest    = "INVALID_REQUEST"         // the provider cannot make sense of the call
	CodeEmptyResponse     = "EMPTY_RESPONSE"          // the model said nothing
	CodeMalformedResponse = "MALFORMED_RESPONSE"      // the provider does not speak the protocol
	CodeStreamClosed      = "STREAM_CLOSED"           // the stream ended before the response did
	CodeAborted           = "ABORTED"                 // the caller gave up
	CodeUnknown           = "UNKNOWN"
)

// Passing reports whether a call that failed with this code may succeed when it is made again unchanged.
func Passing(code string) bool {
	switch code {
	case CodeRateLimit, CodeServer, CodeTimeout, CodeTransport, CodeEmptyResponse, CodeStreamClosed:
		return true
	}
	return false
}

// Unreachable reports whether a failure with this code says that no model was there to be asked, or that it refused
// the key.
func Unreachable(code string) bool {
	switch code {
	case CodeMissingCredential, CodeInvalidCredential, CodeAuth, CodeTransport:
		return true
	}
	return false
}

// RefusedText returns CodeContextWindow or CodeQuota when a provider's words mean that, whatever its status was, and
// empty otherwise.
func RefusedText(text string) string {
	text = strings.ToLower(text)
	for _, s := range []string{
		"context length exceeded", "context_length_exceeded", "context window exceeded", "exceeds the context window",
		"exceeds the model's context", "exceeds model context", "exceed_context_size", "exceeds the available context size",
		"maximum context length", "maximum model length", "prompt too long", "prompt is too long", "input is too long",
	} {
		if strings.Contains(text, s) {
			return CodeContextWindow
		}
	}
	for _, s := range []string{
		"insufficient quota", "insufficient_quota", "insufficient balance", "insufficient credits", "exceeded your current quota",
		"quota exceeded", "usage limit reached", "out of credits",
	} {
		if strings.Contains(text, s) {
			return CodeQuota
		}
	}
	return ""
}

// Aborted returns the error of a call that the end of ctx ended.
func Aborted(ctx context.Context) *Error {
	return &Error{Code: CodeAborted, Message: "model call aborted by caller", Err: context.Cause(ctx)}
}
