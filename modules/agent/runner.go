package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"dsh/modules/jobs"
	"dsh/modules/llm"
	"dsh/modules/session"
)

// Runner runs one task to its end. Its methods may be called concurrently.
type Runner interface {
	// Run begins a session, or resumes one, makes a turn of it, ends what the turn left running, and closes the session.
	//
	// Before anything is stored it looks for what the model needs: without a key the error is an *llm.Error with the code
	// llm.CodeMissingCredential. A task without text is an *InvalidError; errors of the store and of Agent.Turn come
	// through. A job that could not be ended is a *LeftoverError; the Report is complete with that one.
	//
	// The end of ctx ends the turn, as Agent.Turn says, and is no error then.
	Run(ctx context.Context, t Task) (Report, error)
}

// Task is something to do.
type Task struct {
	Text   string
	Resume string // the id of the session to go on with; empty: a new one
	CWD    string // where a new session works, absolute; empty: the host's working directory

	// Opened, if not nil, is called with the session's id as soon as there is one.
	Opened func(sessionID string)

	// Progress, if not nil, is called with lines that tell a person how the work goes: the session's id, each tool call
	// with the time that it took, and what else takes time. Warn, if not nil, is called with lines that a person should see
	// in any case. Both get one line at a time, without its end and without anything that acts on a terminal.
	Progress, Warn func(line string)
}

// Report is how a task went.
type Report struct {
	SessionID string
	Location  string // where the session's log is, for people; empty if there is nothing to name
	Outcome   Outcome
	Ended     []jobs.Snapshot // background jobs that were alive when the turn was over
}

// LeftoverError is work that could not be proven to have ended.
type LeftoverError struct {
	Jobs []string
	Err  error
}

// Error names the jobs.
func (e *LeftoverError) Error() string {
	return fmt.Sprintf("background jobs not proven gone: %s: %v", strings.Join(e.Jobs, ", "), e.Err)
}

// Unwrap returns why the end could not be proven.
func (e *LeftoverError) Unwrap() error { return e.Err }

// The statuses with which a program ends whose job is one task.
const (
	ExitCompleted = 0
	ExitFailed    = 1 // the turn failed, or there was none
	ExitUsage     = 2 // no key, or a task that cannot be one
	ExitLeftover  = 3 // something that the task started could not be proven gone
)

// ExitStatus returns the status that stands for what Run returned, for a program that nobody interrupted.
func ExitStatus(r Report, err error) int {
	var leftover *LeftoverError
	var invalid *InvalidError
	var model *llm.Error
	switch {
	case errors.As(err, &leftover):
		return ExitLeftover
	case errors.As(err, &invalid), errors.Is(err, session.ErrNotFound):
		return ExitUsage
	case errors.As(err, &model): // before the turn, so it is about what was set
		return ExitUsage
	case err != nil || r.Outcome.Reason.Kind != session.EndCompleted:
		return ExitFailed
	}
	return ExitCompleted
}

// Failure returns, for people, why a turn did not complete; empty if it did.
func Failure(r session.Reason) string {
	switch r.Kind {
	case session.EndCompleted:
		return ""
	case session.EndError:
		return fmt.Sprintf("%s: %s", r.Error.Code, r.Error.Message)
	case session.EndAborted:
		return (&AbortError{*r.Abort}).Error()
	case session.EndMaxTokens:
		return "the model's response was cut off at its limit of tokens"
	}
	return "the turn ended: " + string(r.Kind)
}
