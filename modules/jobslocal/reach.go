package jobslocal

import (
	"context"
	"fmt"
	"time"

	"dsh/modules/jobs"
)

// reach returns the job that id names for a session. The caller holds the lock.
func (r *registry) reach(session, id string) (*job, error) {
	j := r.byID[id]
	if j == nil {
		e := &jobs.UnknownError{ID: id}
		for _, j := range r.jobs {
			if j.reachable(session) {
				e.Known = append(e.Known, j.id)
			}
		}
		return nil, e
	}
	if !j.reachable(session) {
		return nil, &jobs.ForeignError{ID: id}
	}
	return j, nil
}

func (j *job) reachable(session string) bool { return j.spec.Owner == "" || j.spec.Owner == session }

// List implements jobs.Registry.
func (r *registry) List(session string) []jobs.Snapshot {
	var list []jobs.Snapshot
	var works []jobs.Work
	r.mu.Lock()
	for _, j := range r.jobs {
		if j.reachable(session) {
			list, works = append(list, j.snapshot()), append(works, j.work)
		}
	}
	r.mu.Unlock()
	for i := range list {
		progress(&list[i], works[i])
	}
	return list
}

// progress adds to the state of a job that has not ended how far it has come.
func progress(s *jobs.Snapshot, work jobs.Work) {
	if !s.Status.Terminal() {
		s.Detail = work.Progress()
	}
}

// Find implements jobs.Registry.
func (r *registry) Find(session, id string) (jobs.Snapshot, error) {
	r.mu.Lock()
	j, err := r.reach(session, id)
	if err != nil {
		r.mu.Unlock()
		return jobs.Snapshot{}, err
	}
	s, work := j.snapshot(), j.work
	r.mu.Unlock()
	progress(&s, work)
	return s, nil
}

// Read implements jobs.Registry. The state is taken first: what is read after the end is all there will be.
func (r *registry) Read(session, id string) (jobs.Reading, error) {
	r.mu.Lock()
	j, err := r.reach(session, id)
	r.mu.Unlock()
	if err != nil {
		return jobs.Reading{}, err
	}
	j.reading.Lock()
	defer j.reading.Unlock()

	r.mu.Lock()
	reading, work := jobs.Reading{Job: j.snapshot()}, j.work
	if ended := j.status.Terminal(); ended {
		r.report(j)
		j.work = nil
	}
	r.mu.Unlock()
	if work != nil {
		progress(&reading.Job, work)
		reading.Text = work.Read()
	}
	return reading, nil
}

// Wait implements jobs.Registry.
func (r *registry) Wait(ctx context.Context, session, id string, timeout time.Duration) (jobs.Snapshot, error) {
	if timeout <= 0 {
		return jobs.Snapshot{}, &jobs.InvalidError{
			What: "wait timeout", Reason: fmt.Sprintf("expected a positive number of milliseconds, got %d", timeout.Milliseconds()),
		}
	}
	r.mu.Lock()
	j, err := r.reach(session, id)
	if err != nil {
		r.mu.Unlock()
		return jobs.Snapshot{}, err
	}
	if j.status.Terminal() && ctx.Err() == nil {
		r.report(j)
		defer r.mu.Unlock()
		return j.snapshot(), nil
	}
	j.holders++
	r.mu.Unlock()

	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-j.done:
	case <-timer.C:
	case <-ctx.Done():
	}

	r.mu.Lock()
	if ctx.Err() != nil { // whoever waited will not tell
		r.release(j, false)
		r.mu.Unlock()
		return jobs.Snapshot{}, fmt.Errorf("wait aborted: %w", context.Cause(ctx))
	}
	s, work := j.snapshot(), j.work
	r.release(j, s.Status.Terminal())
	r.mu.Unlock()
	progress(&s, work)
	return s, nil
}

// Kill implements jobs.Registry.
func (r *registry) Kill(session, id, reason string) (jobs.Snapshot, bool, error) {
	r.mu.Lock()
	j, err := r.reach(session, id)
	if err != nil {
		r.mu.Unlock()
		return jobs.Snapshot{}, false, err
	}
	if j.status.Terminal() {
		r.report(j)
		s := j.snapshot()
		r.mu.Unlock()
		return s, false, nil
	}
	j.holders++
	work := j.work
	r.mu.Unlock()

	err = cancelled(work, reason)

	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.release(j, false)
		return j.snapshot(), false, fmt.Errorf("job %s: %w", id, err)
	}
	if j.status == jobs.Running {
		j.status = jobs.Stopping
	}
	r.release(j, true)
	return j.snapshot(), true, nil
}

// TakeNotices implements jobs.Registry.
func (r *registry) TakeNotices(session string) []jobs.Notice {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.owners[session]
	if o == nil {
		return nil
	}
	var notices []jobs.Notice
	for _, j := range o.notices {
		notices = append(notices, jobs.Notice{Job: j.snapshot()})
		j.reported = true
	}
	o.notices = nil
	r.tidy(session)
	return notices
}

// Watch implements jobs.Registry.
func (r *registry) Watch(session string) (<-chan struct{}, func()) {
	c := make(chan struct{}, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.owner(session)
	o.watchers[&c] = true
	if len(o.notices) > 0 {
		signal(c)
	}
	return c, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(o.watchers, &c)
		r.tidy(session)
	}
}
