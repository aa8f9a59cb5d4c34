// Package shell is the contract for running shell commands.
//
// A Request says what a caller wants and leaves open what it does not care about. Executor.Resolve turns it into a Spec,
// the only place where defaults and caps are applied; Run and Start take the Spec and default nothing. A command that
// fails, is killed or runs out of time is a Result, not an error.
//
// Package shelltest holds the suite that every executor passes.
package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"dsh/module/key"
	"dsh/modules/sandbox"
)

// Key names the capability.
var Key = key.Of[Executor]("shell")

// Executor runs shell commands. Its methods may be called concurrently.
type Executor interface {
	// Resolve fills in a Request with this executor's defaults and caps. It refuses, with an *InvalidError, what can not
	// be run anywhere: a NUL byte in the command, a working directory that is not absolute, a timeout or a budget that is
	// not positive; a command that is too long is an error that wraps ErrCommandTooLong.
	Resolve(Request) (Spec, error)

	// Run runs a command to its end. The context's end and the Spec's timeout end the command and whatever it started;
	// the first of them is the one that the Result names. A context that has ended already runs nothing and is an aborted
	// Result. Once Run has returned, the context has no more effect: what survives a command that ended by itself goes on.
	//
	// An error means that the command could not be started or its end not be learned: a *subprocess.DirError for a
	// working directory that cannot be used, an *InvalidError or ErrCommandTooLong for a Spec that Resolve would not make.
	Run(ctx context.Context, s Spec) (Result, error)

	// Start starts a command and leaves it running. The context bounds the preparation alone, and one that has ended
	// already starts nothing and is the error; a started process ends by itself, by Kill, or with the runtime that owns
	// it. It has no timeout. Errors are those of Run.
	Start(ctx context.Context, s Spec) (Process, error)

	// Mode returns the mode that commands are confined to when their Request has no Policy. ok is false for an executor
	// that confines nothing; it refuses a Request with a Policy. One that confines never runs a command that it cannot
	// confine: the error is then a *sandbox.UnavailableError.
	Mode() (mode sandbox.Mode, ok bool)
}

// Request is what a caller asks for. Only Command is required.
type Request struct {
	Command string
	// Workdir is the working directory, absolute; empty: the executor's own default, else the host's.
	Workdir string
	// Timeout ends a foreground command; nil: the executor's default. Over the executor's cap it is clamped.
	Timeout *time.Duration
	// StdoutMaxBytes is how much of the end of stdout is kept; 0: the executor's default.
	StdoutMaxBytes int64
	// Stdin is what the command reads; nil: the null device. An *os.File is handed to the command itself.
	Stdin io.Reader
	// Env is set over the environment that commands inherit and under Facts.
	Env map[string]string
	// Facts are managed DSH_* variables, set last.
	Facts map[string]string
	// Progress, if not nil, is called with the output as it arrives, each stream from a goroutine of its own. It must not
	// keep the slice; while it blocks, the command's writes to that stream do.
	Progress func(Stream, []byte)
	// Policy is what the command may do, for an executor that confines; nil: what is allowed outside of a session.
	Policy *sandbox.Policy
}

// Stream is one of a command's two output streams.
type Stream string

// The streams of a command.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// Spec is a Request with every default and cap applied.
type Spec struct {
	Command        string
	Workdir        string
	Timeout        time.Duration
	TimeoutClamped bool // the request asked for more
	StdoutMaxBytes int64
	Stdin          io.Reader
	Env            map[string]string
	Facts          map[string]string
	Progress       func(Stream, []byte)
	Policy         *sandbox.Policy // nil: the executor does not confine
}

// Result is how a foreground command went. Its JSON form is the one that models and scripts see.
type Result struct {
	ExitCode *int    `json:"exitCode"` // nil when a signal ended it or nothing was run
	Signal   *string `json:"signal"`   // such as "SIGTERM"; nil when it exited by itself
	// TimedOut and Aborted say who ended the command first, if anybody did; never both. A command that answers TERM with
	// exit 0 has still timed out.
	TimedOut  bool   `json:"timedOut"`
	Aborted   bool   `json:"aborted"`
	TimeoutMs int64  `json:"timeoutMs"` // the timeout that was in force
	Stdout    Output `json:"stdout"`
	Stderr    Output `json:"stderr"`
	// Sandbox is what an executor that confines has to say; nil otherwise.
	Sandbox *sandbox.Facts `json:"sandbox,omitempty"`
	// Survivors counts processes of the command that go on after it; they end with the runtime.
	Survivors      int    `json:"survivors"`
	Range          string `json:"range"` // the kind of range that holds them
	DurationMs     int64  `json:"durationMs"`
	TimeoutClamped bool   `json:"timeoutClamped,omitempty"` // the requested timeout was over the cap
	OOMKilled      bool   `json:"oomKilled,omitempty"`      // the kernel killed some of the command at its limit of memory
}

// Output is one stream of a finished command.
type Output struct {
	Text      string `json:"text"`      // the end of the stream, as UTF-8; invalid bytes are U+FFFD
	Truncated bool   `json:"truncated"` // Text is not the whole
	SpillPath string `json:"spillPath,omitempty"`
	Bytes     int64  `json:"bytes"` // of the whole stream
}

// Process is a started command. Its methods may be called concurrently.
type Process interface {
	// Done is closed when the command has settled.
	Done() <-chan struct{}
	// Status returns the present state.
	Status() Status
	// ReadOutput returns what was written since the last ReadOutput. Joined, the deltas are the stream as UTF-8, invalid
	// bytes as U+FFFD, but for what Lossy says: the reader was too slow and only the end was kept. A character of which
	// only the beginning was written waits for its rest, or for the end.
	ReadOutput() Delta
	// Kill ends the command and whatever it started, also when the command itself has settled. It returns false if the
	// command was not running or had been killed already, and does not wait.
	Kill() bool
	// Hurry takes the grace from Kill, from one at work and from a later one. It does not wait and is idempotent.
	Hurry()
	// Quiesce waits until no process of the command is left.
	Quiesce(ctx context.Context) error
}

// State is how far a started command has come.
type State string

// The states of a started command.
const (
	Running   State = "running"
	Completed State = "completed" // it exited by itself
	Killed    State = "killed"    // Kill was called or a signal ended it, or its end could not be learned
)

// Status is the state of a started command.
type Status struct {
	State    State
	ExitCode *int    // nil until the command has settled, and when a signal ended it
	Signal   *string // such as "SIGTERM"; nil when it exited by itself
	Err      error   // why the end could not be learned
	// Sandbox is what there is to say about a command that was confined, once it has settled.
	Sandbox *sandbox.Facts
}

// Delta is a piece of a started command's output.
type Delta struct {
	Stdout, Stderr string
	// Lossy says that something between the last delta and this one was not kept.
	Lossy bool
	// StdoutSpillPath and StderrSpillPath name files with the whole stream; empty while memory holds it, and when there
	// is none.
	StdoutSpillPath, StderrSpillPath string
}

// ErrCommandTooLong is wrapped by what Resolve, Run and Start return for a command that is too long to be handed over.
// The text says how long it is and what the limit is.
var ErrCommandTooLong = errors.New("command too long")

// InvalidError is a field of a Request that cannot work.
type InvalidError struct {
	Field  string // as the bash tool's parameters spell it: command, timeoutMs, ...
	Reason string // what was expected, and what was given
}

// Error returns `invalid <field>: <reason>`.
func (e *InvalidError) Error() string { return fmt.Sprintf("invalid %s: %s", e.Field, e.Reason) }
