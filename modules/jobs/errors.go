package jobs

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// ErrStopped says that the registry's row has stopped.
var ErrStopped = errors.New("background jobs have been stopped")

// ErrNoController says that nobody could look after the job.
var ErrNoController = errors.New("background jobs unavailable: no job controller serves this agent (load " +
	"@deepseek-ai/dsh-tool-jobs in its composition)")

// Codes of these errors where errors have codes.
const (
	CodeUnknown = "UNKNOWN_JOB"
	CodeLimit   = "JOB_LIMIT"
)

// LimitError is a job that was refused because its owner has as many as it may.
type LimitError struct{ Limit int }

// Error says what the limit is and how to get below it.
func (e *LimitError) Error() string {
	return fmt.Sprintf("background job limit reached for this owner (limit: %d); use job_kill to stop an unneeded job, wait for "+
		"it to finish, then retry", e.Limit)
}

// InvalidError is a request that cannot work.
type InvalidError struct {
	What   string // such as "job kind"
	Reason string // what was expected, and perhaps what was given
}

// Error returns `invalid <what>: <reason>`.
func (e *InvalidError) Error() string { return fmt.Sprintf("invalid %s: %s", e.What, e.Reason) }

// UnknownError is an id that no job has.
type UnknownError struct {
	ID    string
	Known []string // the jobs that the session can reach, the latest last
}

// Error names the id and the jobs that there are.
func (e *UnknownError) Error() string {
	const most = 20
	text := "unknown job " + printable(e.ID)
	switch n := len(e.Known); {
	case n == 0:
		return text + " (no background jobs)"
	case n > most:
		return fmt.Sprintf("%s (known jobs: ..., %s)", text, strings.Join(e.Known[n-most:], ", "))
	}
	return text + " (known jobs: " + strings.Join(e.Known, ", ") + ")"
}

// ForeignError is a job of another session.
type ForeignError struct{ ID string }

// Error names the job and no session.
func (e *ForeignError) Error() string { return fmt.Sprintf("job %s belongs to another session", e.ID) }

// printable bounds what a message repeats of an id that somebody made up.
func printable(id string) string {
	const most = 80
	if len(id) > most {
		return strconv.Quote(strings.ToValidUTF8(id[:most], "")) + "..."
	}
	if id == "" || strings.ContainsFunc(id, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsGraphic(r) }) {
		return strconv.Quote(id)
	}
	return id
}
