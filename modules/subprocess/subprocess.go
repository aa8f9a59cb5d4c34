// Package subprocess is the contract for running programs and owning every process that comes of them.
//
// A Runtime turns a Spec into a Process. "The leader has exited", "its output is complete" and "nothing of it is left"
// are three facts, and a Process answers for each: Outcome, Done and Quiesce. The processes of one Spec, the leader and
// whatever it started, are its range; the runtime owns the range until it is empty, and its row's stop ends all ranges.
//
// The contract never interprets a command line and applies no defaults: what to run, where, with which budgets, is
// stated whole by the caller. Package subprocesstest holds the suite that every runtime passes, and a second runtime.
package subprocess

import (
	"context"
	"io"
	"os"
	"time"

	"dsh/module/key"
)

// Key names the capability.
var Key = key.Of[Runtime]("subprocess")

// MaxGrace is the longest grace that a Spec may have: 2147483647 ms, the range of a timer in the wild's settings.
const MaxGrace = 2147483647 * time.Millisecond

// Runtime starts processes and owns them. Its methods may be called concurrently.
type Runtime interface {
	// Spawn starts s.Argv. The context lives as long as the process: when it ends, the effect is that of
	// Process.Terminate, also for what survives the leader. A Spec that cannot work is refused before anything is
	// started, with an *InvalidError, a *DirError, an *ExecutableError or the context's cause; after the runtime's row
	// stopped the error is ErrStopped.
	Spawn(ctx context.Context, s Spec) (Process, error)

	// ResolveExecutable returns the absolute path of a program: name itself if it is absolute, else the first match on
	// the PATH that commands get, of whose entries only the absolute ones count. A relative name with a separator, and
	// a name that is not found, are an *ExecutableError.
	ResolveExecutable(ctx context.Context, name string) (string, error)

	// Withhold keeps the named variables out of the environment of every later Spawn, until undo is called. Names that
	// several callers withhold stay withheld until the last undo. A Spec can still set them.
	Withhold(names ...string) (undo func())

	// Range says what kind of range later commands get.
	Range() RangeKind
}

// RangeKind says by what means the processes of one command are held together.
type RangeKind string

// The kinds of range, the best first. Out of a scope and a cgroup nothing gets that may not write to the host's cgroups;
// who belongs to one, the kernel says.
const (
	RangeScope  RangeKind = "scope"  // a cgroup of its own, in a scope that a systemd manager has delegated to the host
	RangeCgroup RangeKind = "cgroup" // a cgroup of its own, below the one that the host was started in
	RangeGroup  RangeKind = "group"  // a session and process group, with escaped members found as orphans of the host
	RangeNone   RangeKind = "none"   // a process group alone: what leaves it is not owned
)

// RangeVerdict is what a runtime found out about one kind of range.
type RangeVerdict struct {
	Kind   RangeKind
	Chosen bool   // the kind is in force
	Reason string // why it is, or is not; a sentence without a capital and a stop
}

// RangeReporter is a Runtime that chooses among kinds of range.
type RangeReporter interface {
	// Ranges returns a verdict on every kind that was looked at, the best first. It is nil before the row has started.
	Ranges() []RangeVerdict
}

// Spec is a request to start one process, complete: no field has a default but those whose zero value says so.
type Spec struct {
	// Argv is the program, absolute or as ResolveExecutable takes it, and its arguments. The program sees it unchanged.
	Argv []string
	// Path is the program in place of Argv[0], by the same rules, when Argv[0] is only the name that the program is to
	// see: a shell that was resolved once still calls itself "bash" in its messages. Empty: Argv[0] is the program.
	Path string
	// Dir is the working directory, absolute.
	Dir string
	// Env edits the scrubbed environment of the host.
	Env Env
	// Stdin is the null device by default.
	Stdin Stdin
	// Stdout and Stderr must be stated.
	Stdout, Stderr Output
	// Grace is the time from TERM to KILL and the bound on draining output after the leader's exit; from 1 ns to
	// MaxGrace.
	Grace time.Duration
	// ExtraFiles become the descriptors 3, 4, ... of the process. Spawn closes them in every case.
	ExtraFiles []*os.File
	// OnThread, if not nil, runs on the operating system thread that forks, right before it does; the thread is not
	// used again. An error refuses the spawn. A runtime that cannot do this refuses the Spec.
	OnThread func() error
	// Wrapper says that the leader is a runner that passes its child's status on: it is spared by TERM, so that the
	// status is not lost, and is no survivor.
	Wrapper bool
	// Limits bound the whole range. A runtime that cannot hold a command to them refuses the Spec.
	Limits Limits
}

// Limits bound what the processes of a range use together. A field that is 0 limits nothing.
type Limits struct {
	MemoryMax int64   // bytes; more, and the kernel kills
	PidsMax   int64   // processes and threads; more cannot be started
	CPUMax    float64 // processors' worth of time
}

// Limiter is a Runtime that may be able to hold commands to limits.
type Limiter interface {
	// AllowLimits returns why no command can have the limits in l, or nil; later commands can have them then. Which value
	// they have does not matter, only whether it is 0. The row must have started.
	AllowLimits(l Limits) error
}

// Env is a set of edits on the environment that commands inherit: the host's, without names that look like secrets
// (KEY, PASSWORD, PASSPHRASE, SECRET, TOKEN, CREDENTIAL in any case), withheld names and DSH_*.
type Env struct {
	// Unset removes inherited names. An entry that ends in * removes every name that begins with the rest.
	Unset []string
	// Set adds or replaces, after Unset. It may bring back what was scrubbed.
	Set map[string]string
}

// Stdin says where a process reads from. The zero value is the null device.
type Stdin struct {
	Pipe   bool      // the caller writes, through Process.Stdin
	Bytes  []byte    // written once, then the end
	Reader io.Reader // copied until its end; an *os.File is handed to the process itself
}

// Output says where a stream goes. Exactly one field is set.
type Output struct {
	Pipe    bool // the caller reads, through Process.StdoutPipe or StderrPipe
	Inherit bool // the host's own stream
	Collect *Collect
}

// Collect keeps the tail of a stream, and the whole of it in a file when the tail is not the whole.
type Collect struct {
	// MaxBytes is how much of the end stays in memory.
	MaxBytes int64
	// SpillMaxBytes is how long a stream may become before its file is given up; 0: no file at all.
	SpillMaxBytes int64
	// Tee, if not nil, is called with each piece of the stream in order, from one goroutine, before the next is read. It
	// must not keep the slice. While it blocks the process's writes do, and settling waits for it for at most Grace.
	Tee func(p []byte)
}

// Process is one started leader and its range. Its methods may be called concurrently.
type Process interface {
	// Done is closed when the process has settled: the outcome is known and collected output is complete.
	Done() <-chan struct{}
	// Outcome waits for Done and returns how the leader ended. An error means that the runtime could not learn it.
	Outcome() (Outcome, error)
	// Terminate asks the whole range to end: TERM at once, KILL after the Spec's grace if the range is not empty by
	// then. It does not wait, is idempotent, and does nothing to an empty range.
	Terminate()
	// Hurry takes the grace from Terminate, from one at work and from a later one: what TERM has not ended gets KILL at
	// once. It does not wait and is idempotent.
	Hurry()
	// Quiesce waits until nothing of the range is left. It returns the context's cause if that ends first.
	Quiesce(ctx context.Context) error
	// Survivors returns how many processes of the range were left when the process settled. It is 0 before that.
	Survivors() int
	// Stdin returns the write end for Stdin.Pipe, otherwise nil. Closing it is the process's end of file.
	Stdin() io.WriteCloser
	// StdoutPipe and StderrPipe return the read end for Output.Pipe, otherwise nil. The caller closes it.
	StdoutPipe() io.ReadCloser
	StderrPipe() io.ReadCloser
	// Stdout and Stderr return what Output.Collect keeps, otherwise nil. They may be read at any time, also after Done.
	Stdout() Reader
	Stderr() Reader
}

// Outcome is how a leader ended. It never says why: a caller that ends a process knows its own reason.
type Outcome struct {
	ExitCode int    // -1 when a signal ended it
	Signal   string // such as SIGTERM; empty when it exited by itself
	// OOMKilled says that the kernel killed some process of the range, maybe not the leader, at Limits.MemoryMax.
	OOMKilled bool
}

// Reader reads a collected stream by offsets into the whole of it, so that any number of readers keep their own place.
type Reader interface {
	// ReadAt returns the bytes from offset to the present end, and the offset to go on from. If the stream's memory
	// begins only after offset, all of it is returned and lossy is true. The slice is the caller's.
	ReadAt(offset int64) (p []byte, next int64, lossy bool)
	// Collected returns the present state of the stream.
	Collected() Collected
}

// Collected is the state of a collected stream.
type Collected struct {
	Tail      []byte // the last Collect.MaxBytes bytes; the caller's own copy
	Total     int64  // bytes since the start
	Truncated bool   // Tail is not the whole stream
	SpillPath string // a file with the whole stream; empty unless there is a complete one
}
