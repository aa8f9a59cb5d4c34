package jobstest

import (
	"context"
	"strings"
	"sync"

	"dsh/modules/jobs"
)

// Work is a jobs.Work that does what it is told.
type Work struct {
	// OnCancel, if not nil, is called by Cancel, with a lock held by nobody.
	OnCancel func(reason string) error
	// OnHurry, if not nil, is called by Hurry, likewise.
	OnHurry func()

	done chan struct{}

	mu       sync.Mutex
	ended    bool
	outcome  jobs.Outcome
	progress string
	unread   strings.Builder
	reasons  []string
	hurried  bool
}

var _ jobs.Work = (*Work)(nil)

// NewWork returns work that goes on until End is called.
func NewWork() *Work { return &Work{done: make(chan struct{})} }

// Run returns a Spec's Run that gives this work.
func (w *Work) Run() func(context.Context) (jobs.Work, error) {
	return func(context.Context) (jobs.Work, error) { return w, nil }
}

// End ends the work; a second call does nothing.
func (w *Work) End(status jobs.Status, detail string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.ended, w.outcome = true, jobs.Outcome{Status: status, Detail: detail}
		close(w.done)
	}
}

// Write adds output.
func (w *Work) Write(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unread.WriteString(text)
}

// Say sets the progress.
func (w *Work) Say(progress string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.progress = progress
}

// Reasons returns what Cancel has been called with.
func (w *Work) Reasons() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.reasons...)
}

// Hurried reports whether Hurry has been called.
func (w *Work) Hurried() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hurried
}

// Hurry implements jobs.Work.
func (w *Work) Hurry() {
	w.mu.Lock()
	w.hurried = true
	w.mu.Unlock()
	if w.OnHurry != nil {
		w.OnHurry()
	}
}

// Done implements jobs.Work.
func (w *Work) Done() <-chan struct{} { return w.done }

// Outcome implements jobs.Work.
func (w *Work) Outcome() jobs.Outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.outcome
}

// Progress implements jobs.Work.
func (w *Work) Progress() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.progress
}

// Read implements jobs.Work.
func (w *Work) Read() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := w.unread.String()
	w.unread.Reset()
	return text
}

// Cancel implements jobs.Work.
func (w *Work) Cancel(reason string) error {
	w.mu.Lock()
	w.reasons = append(w.reasons, reason)
	w.mu.Unlock()
	if w.OnCancel == nil {
		return nil
	}
	return w.OnCancel(reason)
}
