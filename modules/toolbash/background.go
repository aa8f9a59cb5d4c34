package toolbash

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"dsh/modules/jobs"
	"dsh/modules/sandbox"
	"dsh/modules/shell"
	"dsh/modules/tools"
)

// job is the value of a command that was started in the background.
type job struct {
	Kind  string `json:"kind"`
	JobID string `json:"jobId"`
}

// offersBackground reports whether commands can be started in the background.
func (b *bash) offersBackground() bool { return b.config.EnableRunInBackground && b.jobs != nil }

// start begins a command as a job. Neither the call's end nor a timeout ends it: it belongs to the jobs' registry.
func (b *bash) start(ctx context.Context, session, command string, r shell.Request) (any, error) {
	s, err := b.jobs.Start(ctx, jobs.Spec{
		Kind: name, Label: command, Owner: session,
		Run: func(ctx context.Context) (jobs.Work, error) {
			spec, err := b.shell.Resolve(r)
			if err != nil {
				return nil, err
			}
			p, err := b.shell.Start(ctx, spec)
			if err != nil {
				return nil, err
			}
			return working(p, b.confines), nil
		},
	})
	var limit *jobs.LimitError
	switch {
	case err == nil:
		return job{Kind: backgroundKind, JobID: s.ID}, nil
	case errors.As(err, &limit):
		return nil, &tools.Error{Code: jobs.CodeLimit, Message: limit.Error()}
	case errors.Is(err, jobs.ErrNoController):
		return nil, invalid("%v", err)
	case ctx.Err() != nil:
		return nil, &tools.Error{Code: tools.CodeAborted, Message: "tool call aborted"}
	}
	return nil, normalised(err)
}

// work is a started command as the work of a job. It is over when no process of the command is left.
type work struct {
	process  shell.Process
	escalate bool // there is something to escalate to
	done     chan struct{}

	mu        sync.Mutex
	cancelled bool

	marked bool // the line about the sandbox has been read; readings come one after the other
}

var _ jobs.Work = (*work)(nil)

func working(p shell.Process, escalate bool) *work {
	w := &work{process: p, escalate: escalate, done: make(chan struct{})}
	// It ends with the range, which belongs to the runtime: nothing of this row has to wait for it.
	go func() {
		defer close(w.done)
		<-p.Done()
		_ = p.Quiesce(context.Background()) // fails for its context alone
	}()
	return w
}

func (w *work) Done() <-chan struct{} { return w.done }

func (w *work) Cancel(string) error {
	w.mu.Lock()
	w.cancelled = true
	w.mu.Unlock()
	w.process.Kill()
	return nil
}

// Hurry implements jobs.Work.
func (w *work) Hurry() { w.process.Hurry() }

// Progress tells a command that has ended, but for processes that it leaves running, from one that has not.
func (w *work) Progress() string {
	select {
	case <-w.process.Done():
		return ended(w.process.Status()) + "; its processes go on"
	default:
		return ""
	}
}

// Outcome says what was killed, the command or what it had left running, and what ended by itself.
func (w *work) Outcome() jobs.Outcome {
	st := w.process.Status()
	w.mu.Lock()
	cancelled := w.cancelled
	w.mu.Unlock()
	switch {
	case st.Err != nil:
		return jobs.Outcome{Status: jobs.Failed, Detail: st.Err.Error()}
	case st.State == shell.Killed:
		return jobs.Outcome{Status: jobs.Killed, Detail: ended(st)}
	case cancelled:
		return jobs.Outcome{Status: jobs.Killed, Detail: ended(st) + "; its processes were killed"}
	}
	return jobs.Outcome{Status: jobs.Completed, Detail: ended(st)}
}

// ended returns how a command ended.
func ended(st shell.Status) string {
	switch {
	case st.Signal != nil:
		return "signal: " + *st.Signal
	case st.State == shell.Killed:
		return "killed before exit"
	case st.ExitCode == nil:
		return "exit code: 0"
	}
	return fmt.Sprintf("exit code: %d", *st.ExitCode)
}

// Read returns the output since the last time, and once, after the command's end, what its sandbox had to say. Whether it
// has ended is asked before reading: what is read then is all there will be.
func (w *work) Read() string {
	var facts *sandbox.Facts
	select {
	case <-w.process.Done():
		facts = w.process.Status().Sandbox
	default:
	}
	d := w.process.ReadOutput()
	text := d.Stdout
	if d.Stderr != "" {
		text = onNewLine(text) + "[stderr]\n" + d.Stderr
	}
	var lines []string
	if d.Lossy {
		lines = append(lines, "[some output was dropped from memory; full output: "+spills(d)+"]")
	}
	if facts != nil && !w.marked {
		w.marked = true
		lines = append(lines, w.marks(*facts)...)
	}
	if len(lines) > 0 {
		text = onNewLine(text) + strings.Join(lines, "\n")
	}
	return text
}

func (w *work) marks(f sandbox.Facts) []string {
	switch {
	case f.RunnerFailed:
		return []string{sandbox.RunnerFailedMarker(f.Mode)}
	case f.Denied && w.escalate:
		return []string{sandbox.DeniedMarker(f.Mode), sandbox.EscalationHint("command")}
	case f.Denied:
		return []string{sandbox.DeniedMarker(f.Mode)}
	}
	return nil
}

func spills(d shell.Delta) string {
	var paths []string
	for _, p := range []string{d.StdoutSpillPath, d.StderrSpillPath} {
		if p != "" {
			paths = append(paths, p)
		}
	}
	if len(paths) == 0 {
		return "(unavailable)"
	}
	return strings.Join(paths, ", ")
}
