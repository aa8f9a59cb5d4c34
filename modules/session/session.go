// Package session is the contract for keeping an agent's session: an append-only log of what happened, which is the one
// source of what the model sees, of where a resumed session goes on, and of what people read afterwards.
//
// A log is a Header and Events. Each event is appended as it happens. What an event may follow, and what the events mean
// together, is State: it is the same for every Store, and a log that a Store hands out has passed it. So Messages is a
// conversation that a model accepts, whatever ended the host: every tool call in a closed step is answered, and opening a
// log that ends in the middle of a turn closes the turn first.
//
// Package sessiontest holds the suite that every store passes.
package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dsh/module/key"
	"dsh/modules/llm"
	"dsh/modules/sandbox"
)

// Key names the capability.
var Key = key.Of[Store]("session")

// Store keeps sessions. Its methods may be called concurrently.
type Store interface {
	// Create begins a session, which the caller closes. Nothing is stored before its first event. A directory that is not
	// absolute, or an id that cannot be one, is an *InvalidError; an id that is taken is ErrExists.
	Create(ctx context.Context, n New) (Session, error)

	// Open resumes a stored session, which the caller closes. What a crash left behind is repaired first, and
	// Session.Recovery tells about it. An id that is not stored is ErrNotFound; a session that is open already, in this
	// host or in another, is ErrLocked; a log that cannot be understood is a *DamageError, and stays as it is.
	Open(ctx context.Context, id string) (Session, error)

	// Live returns a session that this store has open. It is for rows that have something to log about a session that
	// they were told the id of; they do not close it.
	Live(id string) (Session, bool)

	// Read returns a stored log as it is, without repairing it and whoever has it open. Events of unknown types are
	// *Unknown. Errors are those of Open, but for ErrLocked.
	Read(ctx context.Context, id string) (Log, error)

	// List returns a summary of each stored session, the last one changed first.
	List(ctx context.Context) ([]Summary, error)
}

// New is what a session begins with.
type New struct {
	ID  string // empty: a new one
	CWD string // where the session works, absolute
}

// Session is an open session. Its methods may be called concurrently. When its store's row stops it is closed.
type Session interface {
	// Header returns what does not change.
	Header() Header

	// Append adds an event to the log and returns it. It has been handed to the operating system when Append returns, so
	// that the host's death does not lose it; with a TurnEnd everything so far survives the machine's too. An event that
	// cannot follow what is there is an *InvalidError. After any error the log is as it was; after a failure to leave it so
	// every later Append fails. The caller's d is copied, with text that is not UTF-8 made so. After Close the error is
	// ErrClosed.
	Append(d Data) (Event, error)

	// Sync returns when everything that was appended survives the machine's end.
	Sync() error

	// Events returns all events so far. They are shared and must not be changed.
	Events() []Event

	// Messages returns the conversation as the model is to see it. The messages are shared and must not be changed.
	Messages() []llm.Message

	// Surface returns the same with the seq of the event that gave each message.
	Surface() []Node

	// Position returns how far the log has come.
	Position() Position

	// SandboxMode returns the last mode that the session was switched to; ok is false when there was none.
	SandboxMode() (mode sandbox.Mode, ok bool)

	// Recovery returns what Open repaired.
	Recovery() Recovery

	// Close syncs the log and lets others open it. It may be called more than once.
	Close() error
}

// Header is the beginning of a log.
type Header struct {
	Version   int
	ID        string
	CreatedAt time.Time // to the millisecond
	CWD       string    // absolute
}

// Version is the version of logs that this package reads and writes.
const Version = 1

// Log is a stored log as it was read.
type Log struct {
	Header   Header
	Events   []Event
	Torn     int64  // bytes after the last complete event, which opening the session would cut off
	Location string // where the log is, for people; empty if there is nothing to name
}

// Summary is a line of a list of sessions.
type Summary struct {
	ID        string
	CWD       string
	CreatedAt time.Time
	ChangedAt time.Time
	Task      string // the first text that the user wrote
	Location  string
	Err       error // why the log cannot be read; the fields above may be empty then
}

// Position is how far a log has come.
type Position struct {
	Turns int // how many turns have begun; the next one is Turns+1
	Turn  int // the open turn; 0: none
	Step  int // the open step of it; 0: none
	Steps int // how many steps of the open turn have begun
	// Unanswered are the tool calls of the open step that have no result yet, in the model's order.
	Unanswered []Call
}

// Call is a tool call that the model made in the open step.
type Call struct {
	CallID, Name, Arguments string
	Started                 bool // there is a ToolCall for it
}

// Node is a message of the conversation and the event that gave it.
type Node struct {
	Seq     int64
	Message llm.Message
}

// Recovery is what opening a session after a crash did.
type Recovery struct {
	CutBytes int64 // removed from the end: what was written in part
	Closed   int   // events added to close what was open
}

// What an operation on sessions may fail with.
var (
	ErrExists   = errors.New("a session with this id exists already")
	ErrNotFound = errors.New("no such session")
	ErrLocked   = errors.New("the session is open already")
	ErrClosed   = errors.New("the session is closed")
)

// DamageError is a log that cannot be understood.
type DamageError struct {
	ID     string
	File   string // empty if the log is not in one
	Line   int    // the first line is 1; 0: the log as a whole
	Reason string
}

// Error returns the place and the reason.
func (e *DamageError) Error() string {
	where := fmt.Sprintf("session %q", e.ID)
	if e.File != "" {
		where = e.File
	}
	if e.Line > 0 {
		where = fmt.Sprintf("%s:%d", where, e.Line)
	}
	return where + ": " + e.Reason
}

// InvalidError is a session or an event that cannot be.
type InvalidError struct{ Reason string }

// Error returns the reason.
func (e *InvalidError) Error() string { return e.Reason }
