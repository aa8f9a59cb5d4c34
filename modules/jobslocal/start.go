package jobslocal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"dsh/modules/jobs"
)

// Start implements jobs.Registry.
func (r *registry) Start(ctx context.Context, s jobs.Spec) (jobs.Snapshot, error) {
	if ctx.Err() != nil {
		return jobs.Snapshot{}, context.Cause(ctx)
	}
	ctx, abandon := context.WithCancelCause(ctx)
	defer abandon(nil)
	j, err := r.admit(s, abandon)
	if err != nil {
		return jobs.Snapshot{}, err
	}
	prepared := false
	defer func() { // also when Run panics
		if !prepared {
			r.settle(j, jobs.Outcome{Status: jobs.Failed})
		}
	}()
	work, err := s.Run(ctx)
	if err == nil && work == nil {
		err = errors.New("the job has no work")
	}
	if err != nil {
		return jobs.Snapshot{}, err
	}
	prepared = true
	return r.begin(ctx, j, work)
}

// admit takes a place for a job, or says why there is none.
func (r *registry) admit(s jobs.Spec, abandon context.CancelCauseFunc) (*job, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.owner(s.Owner)
	defer r.tidy(s.Owner)
	switch {
	case r.stopped:
		return nil, jobs.ErrStopped
	case r.controllers == 0:
		return nil, jobs.ErrNoController
	case strings.TrimSpace(s.Kind) == "":
		return nil, &jobs.InvalidError{What: "job kind", Reason: "expected a non-empty string"}
	case strings.TrimSpace(s.Label) == "":
		return nil, &jobs.InvalidError{What: "job label", Reason: "expected a non-empty string"}
	case s.OutputLimitBytes < 0:
		return nil, &jobs.InvalidError{
			What: "outputLimitBytes", Reason: fmt.Sprintf("expected a positive safe integer, got %d", s.OutputLimitBytes),
		}
	case o.ending > 0:
		return nil, errOwnerDisposed
	case len(o.live) >= r.limit:
		return nil, &jobs.LimitError{Limit: r.limit}
	}
	s.Run = nil
	if len(s.Label) > jobs.MaxLabel {
		s.Label = jobs.Clip(s.Label, jobs.MaxLabel) + "..."
	}
	j := &job{spec: s, abandon: abandon, status: jobs.Running, done: make(chan struct{})}
	o.live[j] = true
	return j, nil
}

// begin gives the work of an admitted job an id. If the caller has gone meanwhile, or the registry wants no jobs any more,
// the work is cancelled instead and keeps the place until it has ended.
func (r *registry) begin(ctx context.Context, j *job, work jobs.Work) (jobs.Snapshot, error) {
	r.mu.Lock()
	j.work, j.startedAt = work, time.Now()
	gone := context.Cause(ctx)
	if gone == nil {
		r.counters[j.spec.Kind]++
		j.id = fmt.Sprintf("%s-%d", j.spec.Kind, r.counters[j.spec.Kind])
		r.jobs = append(r.jobs, j)
		r.byID[j.id] = j
	}
	s := j.snapshot()
	r.mu.Unlock()
	go r.follow(j, work) // stop waits for it, through j.done
	if gone != nil {
		r.cancel(j, work, gone.Error())
		return jobs.Snapshot{}, gone
	}
	r.log.Debug("job started", "job", j.id, "session", j.spec.Owner)
	return s, nil
}

// follow waits for the end of a job's work.
func (r *registry) follow(j *job, work jobs.Work) {
	<-work.Done()
	o := outcome(work)
	r.settle(j, o)
	if j.id != "" {
		r.log.Debug("job ended", "job", j.id, "session", j.spec.Owner, "status", o.Status, "detail", o.Detail)
	}
}

// outcome returns a terminal outcome, whatever the work says.
func outcome(work jobs.Work) (o jobs.Outcome) {
	defer func() {
		if v := recover(); v != nil {
			o = jobs.Outcome{Status: jobs.Failed, Detail: fmt.Sprintf("the job's outcome panicked: %v", v)}
		}
	}()
	if o = work.Outcome(); !o.Status.Terminal() {
		return jobs.Outcome{Status: jobs.Failed, Detail: fmt.Sprintf("the job ended in the state %q", o.Status)}
	}
	return o
}

// cancelled returns what Cancel says, a panic included.
func cancelled(work jobs.Work, reason string) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("cancel panicked: %v", v)
		}
	}()
	return work.Cancel(reason)
}
