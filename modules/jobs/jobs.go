package jobs

import (
	"context"
	"time"

	"dsh/module/key"
)

// Key names the capability.
var Key = key.Of[Registry]("jobs")

// Registry holds jobs. Its methods may be called concurrently. A session is the id of the session that calls or owns;
// empty is outside of any. A method that takes a job's id returns an *UnknownError or a *ForeignError for one that this
// session cannot reach.
type Registry interface {
	// Start admits a job and begins its work. It checks, in this order, that the registry has not stopped (ErrStopped),
	// that there is a controller (ErrNoController), the Spec (an *InvalidError), and the owner's limit (a *LimitError);
	// then it calls s.Run once, and gives the job an id if that succeeds. What fails takes no id and no place.
	//
	// The context bounds the preparation. When it ends before Start returns, the error is its cause and what was begun is
	// cancelled; afterwards it has no effect.
	Start(ctx context.Context, s Spec) (Snapshot, error)

	// List returns the jobs that a session can reach, in order of their start.
	List(session string) []Snapshot
	// Find returns one of them. It reports nothing to anybody.
	Find(session, id string) (Snapshot, error)
	// Read returns the output since the last Read and the state before it. Joined, the readings are the output: what was
	// written before a job ended can be read afterwards, and nothing is returned twice. A terminal state has been reported
	// with it.
	Read(session, id string) (Reading, error)
	// Wait waits until a job has ended, and returns its state then, or after the timeout its state so far. A timeout that
	// is not positive is an *InvalidError. When the context ends first the error wraps its cause, and the end of the job
	// has not been reported.
	Wait(ctx context.Context, session, id string, timeout time.Duration) (Snapshot, error)
	// Kill asks a job to end, without waiting for it, and returns its state; no notice comes of it. asked is false for a
	// job that had ended before. An error of the work's Cancel is returned, and nothing has changed then.
	Kill(session, id, reason string) (s Snapshot, asked bool, err error)

	// TakeNotices returns the notices for a session that nobody has taken, the oldest first. Each is returned once.
	TakeNotices(session string) []Notice
	// Watch returns a channel that holds a value when a job of the session has ended since the last receive, or there were
	// notices when Watch was called. undo ends that; the channel is not closed.
	Watch(session string) (ended <-chan struct{}, undo func())

	// EndSession cancels the jobs that a session owns, waits until they have ended, and forgets them and their notices. The
	// session can start none meanwhile. What has not ended shortly before the context does is hurried, and the error names
	// what had not ended then.
	EndSession(ctx context.Context, session string) error

	// Control says that there is a controller: somebody who gives owners the means to see and to kill their jobs. Without
	// one no job is started.
	Control() (undo func())
}

// Spec is a job to start.
type Spec struct {
	Kind  string // what sort of work it is; ids are made from it
	Label string // what it does, for lists and notices; of a longer one, MaxLabel bytes and an ellipsis are kept
	Owner string // the session that owns it; empty: none
	// OutputLimitBytes bounds every text that a model gets about the job; 0: no bound.
	OutputLimitBytes int64
	// Run begins the work and returns without waiting for its end. The context is for the preparation alone.
	Run func(context.Context) (Work, error)
}

// MaxLabel is how long a label is kept.
const MaxLabel = 4096

// Work is what a job does. Its methods may be called concurrently, but Read is called by one at a time. None of them
// waits.
type Work interface {
	// Done is closed when nothing of the work is left.
	Done() <-chan struct{}
	// Outcome returns how it went, once Done is closed. The status is Completed, Killed or Failed.
	Outcome() Outcome
	// Progress returns a few words on how far it has come; empty: nothing to say.
	Progress() string
	// Read returns the output since the last Read, also after the end.
	Read() string
	// Cancel asks the work to end. It may be called more than once.
	Cancel(reason string) error
	// Hurry has work that was cancelled end at once, without the time that it would take to end in good order. It may be
	// called more than once.
	Hurry()
}

// Outcome is how a job's work went.
type Outcome struct {
	Status Status
	Detail string
}

// Status is how far a job has come.
type Status string

// The states of a job. The last three are terminal: the first of them that a job reaches stays.
const (
	Running   Status = "running"
	Stopping  Status = "stopping" // it was asked to end, and has not yet
	Completed Status = "completed"
	Killed    Status = "killed"
	Failed    Status = "failed"
)

// Terminal reports whether a job in this state has ended.
func (s Status) Terminal() bool { return s == Completed || s == Killed || s == Failed }

// Snapshot is the state of a job at one moment.
type Snapshot struct {
	ID    string
	Kind  string
	Label string
	Owner string

	Status     Status
	Detail     string    // of the outcome; before the end, of the progress
	StartedAt  time.Time // when its work had been begun
	FinishedAt time.Time // zero before the end

	OutputLimitBytes int64
}

// Reading is a piece of a job's output.
type Reading struct {
	Text string
	Job  Snapshot
}
