package bashexec

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dsh/modules/shell"
	"dsh/modules/subprocess"
)

// Run is shell.Executor's, with a preparation that counts against the deadline; nil: none.
func (e *Executor) Run(ctx context.Context, s shell.Spec, prepare Prepare) (shell.Result, error) {
	begin := time.Now()
	sub, err := e.request(s)
	if err != nil {
		return shell.Result{}, err
	}
	// A value of this call alone: a caller's own deadline, or that of a command around this one, is another cause.
	expired := errors.New("the command's time is up")
	deadline, cancel := context.WithTimeoutCause(ctx, s.Timeout, expired)
	defer cancel()

	r := shell.Result{
		TimeoutMs: s.Timeout.Milliseconds(), TimeoutClamped: s.TimeoutClamped, Range: string(e.runtime.Range()),
	}
	end := func(cause error) {
		r.TimedOut, r.Aborted = cause == expired, cause != nil && cause != expired
		r.DurationMs = time.Since(begin).Milliseconds()
	}

	p, err := e.spawn(deadline, sub, prepare)
	if err != nil {
		// Whatever a preparation made of it, an end of the context is not a failure.
		if cause := context.Cause(deadline); cause != nil {
			end(cause)
			return r, nil
		}
		return shell.Result{}, err
	}
	stop := context.AfterFunc(deadline, p.Terminate)
	<-p.Done()
	// Stopping the function and its having started exclude each other, so a command that settles first has no cause.
	var cause error
	if !stop() {
		cause = context.Cause(deadline)
	}
	outcome, err := p.Outcome()
	if err != nil && cause == nil {
		return shell.Result{}, fmt.Errorf("the command's end is unknown: %w", err)
	}
	if err == nil {
		r.ExitCode, r.Signal = ending(outcome)
		r.OOMKilled = outcome.OOMKilled
	}
	r.Stdout, r.Stderr = output(p.Stdout()), output(p.Stderr())
	r.Survivors = p.Survivors()
	if (cause != nil || e.terminatesWhatSurvives) && e.endRest(p) {
		r.Survivors = 0
	}
	end(cause)
	return r, nil
}

// ending returns the exit code or the signal.
func ending(o subprocess.Outcome) (code *int, signal *string) {
	if o.Signal != "" {
		return nil, &o.Signal
	}
	return &o.ExitCode, nil
}

func output(r subprocess.Reader) shell.Output {
	c := r.Collected()
	tail := c.Tail
	if c.Truncated {
		tail = fromBoundary(tail)
	}
	return shell.Output{Text: text(tail), Truncated: c.Truncated, SpillPath: c.SpillPath, Bytes: c.Total}
}
