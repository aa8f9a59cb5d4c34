package agent

import (
	"context"
	"errors"
	"time"

	"dsh/module/key"
	"dsh/modules/llm"
	"dsh/modules/session"
)

// The capabilities of this package.
var (
	Key       = key.Of[Agent]("agent")
	RunnerKey = key.Of[Runner]("agent-runner")
	PromptKey = key.Of[Prompt]("prompt")
)

// Agent makes turns. Its methods may be called concurrently.
type Agent interface {
	// Turn opens a turn of the session, logs the messages, and asks the model and calls the tools that it asks for until it
	// asks for none, or something else ends the turn. However that goes, the turn and everything in it have been closed in
	// the log, and nothing of it goes on, when Turn returns; the Outcome says how it ended.
	//
	// The end of ctx ends the turn at any moment: the model's stream, the tools and what they started are ended and waited
	// for, and the outcome is session.EndAborted, by whom the cause says if it is an *AbortError, else by the user.
	//
	// An error means that there was no turn, or that it could not be closed: ErrBusy when a turn of the session is open
	// already; the cause of a ctx that had ended before; no message, or one that is not the user's, is an *InvalidError; a
	// log that takes no events is the error of the session. After a log has failed nothing goes on either.
	Turn(ctx context.Context, s session.Session, in Input) (Outcome, error)
}

// Input is what a turn begins with.
type Input struct {
	Messages []llm.Message // in the user's role, at least one
	Model    string        // as llm.Request has it; empty: the row's
	// Observe, if not nil, is called with each event of the turn after it was logged, from one goroutine at a time. The
	// turn waits for it.
	Observe func(Update)
}

// Update is an event of a turn.
type Update struct {
	Event session.Event
	// Took is how long the tool ran, of a session.ToolResult: results are logged in the order in which the model made the
	// calls, however long each took.
	Took time.Duration
}

// Outcome is how a turn went.
type Outcome struct {
	Turn   int
	Steps  int // how often the model was asked, retries aside
	Reason session.Reason
	Text   string    // the last response that has text
	Usage  llm.Usage // the sum of what the model's provider told
}

// ErrBusy says that a turn of the session is open.
var ErrBusy = errors.New("the session is busy with a turn")

// InvalidError is an input that no turn can begin with.
type InvalidError struct{ Reason string }

// Error returns the reason.
func (e *InvalidError) Error() string { return e.Reason }

// AbortError is the cause of a context that ends a turn, when it was not the user who ended it.
type AbortError struct{ session.Abort }

// Error says who ended the turn, and why if that is known.
func (e *AbortError) Error() string {
	if e.Reason == "" {
		return "aborted by " + e.Kind
	}
	return "aborted by " + e.Kind + ": " + e.Reason
}

// Codes of the errors with which a turn ends, beside those of the model.
const (
	CodeMaxSteps = "MAX_STEPS" // the model was asked as often as a turn may ask it
	CodePrompt   = "PROMPT"    // what the model is told could not be put together
)
