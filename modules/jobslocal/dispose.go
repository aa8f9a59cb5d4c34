package jobslocal

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"dsh/modules/jobs"
)

// errOwnerDisposed is the end of jobs whose session ends.
var errOwnerDisposed = errors.New("owner disposed")

// EndSession implements jobs.Registry.
func (r *registry) EndSession(ctx context.Context, session string) error {
	r.mu.Lock()
	o := r.owner(session)
	o.ending++
	ending := r.condemn(o)
	r.mu.Unlock()

	err := r.end(ctx, ending, errOwnerDisposed)

	r.mu.Lock()
	defer r.mu.Unlock()
	o.ending--
	r.forget(func(j *job) bool { return j.spec.Owner == session && j.status.Terminal() })
	r.tidy(session)
	return err
}

// stop is the row's.
func (r *registry) stop(ctx context.Context) error {
	r.mu.Lock()
	r.stopped = true
	var ending []*job
	for _, o := range r.owners {
		ending = append(ending, r.condemn(o)...)
	}
	r.mu.Unlock()
	return r.end(ctx, ending, errors.New("jobs service disposed"))
}

// condemn returns the jobs of an owner that have not ended, of whose end nobody is to be told. The caller holds the lock.
func (r *registry) condemn(o *owner) (ending []*job) {
	for j := range o.live {
		j.reported = true
		ending = append(ending, j)
	}
	return ending
}

// end cancels jobs, all before any is waited for.
func (r *registry) end(ctx context.Context, ending []*job, why error) error {
	for _, j := range ending {
		j.abandon(why)
		r.mu.Lock()
		work := j.work
		if j.status == jobs.Running && work != nil {
			j.status = jobs.Stopping
		}
		r.mu.Unlock()
		if work != nil { // otherwise Start sees to it
			r.cancel(j, work, why.Error())
		}
	}
	early := time.AfterFunc(untilHurry(ctx), func() {
		for _, j := range ending {
			r.mu.Lock()
			work := j.work
			r.mu.Unlock()
			if work != nil && !closed(j.done) {
				work.Hurry()
			}
		}
	})
	defer early.Stop()
	var left []string
	for _, j := range ending {
		select {
		case <-j.done:
			continue
		case <-ctx.Done():
		}
		if !closed(j.done) {
			left = append(left, r.word(j))
		}
	}
	if len(left) > 0 {
		slices.Sort(left)
		return fmt.Errorf("jobs that have not ended: %s: %w", strings.Join(left, ", "), context.Cause(ctx))
	}
	return nil
}

// untilHurry returns how long jobs have to end in good order: but for the last quarter, and no more than a second, of the
// time that ctx leaves.
func untilHurry(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return math.MaxInt64
	}
	left := time.Until(deadline)
	return left - min(left/4, time.Second)
}

// cancel ends the work of a job that nobody is to look after any more. If that cannot be asked for, the job is given up:
// nothing would ever end it.
func (r *registry) cancel(j *job, work jobs.Work, reason string) {
	if err := cancelled(work, reason); err != nil {
		r.log.Error("job can not be cancelled", "job", r.word(j), "error", err)
		r.settle(j, jobs.Outcome{
			Status: jobs.Failed, Detail: fmt.Sprintf("cancel failed during teardown; work may be orphaned: %v", err),
		})
	}
}

// word returns what to call a job.
func (r *registry) word(j *job) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if j.id == "" {
		return j.spec.Kind + " without an id"
	}
	return j.id
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
