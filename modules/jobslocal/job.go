package jobslocal

import (
	"context"
	"slices"
	"sync"
	"time"

	"dsh/modules/jobs"
)

// kept is how many ended jobs of one owner are remembered.
const kept = 256

// job is one job. The registry's lock guards what changes in it.
type job struct {
	spec    jobs.Spec // without Run
	abandon context.CancelCauseFunc
	done    chan struct{} // closed when it has ended

	id         string    // empty before its work has begun, and for ever when nobody has been given it
	work       jobs.Work // nil before it has begun, and once all its output has been read
	status     jobs.Status
	detail     string
	startedAt  time.Time
	finishedAt time.Time

	holders  int  // callers who are about to learn the state: they will report the end, or leave
	reported bool // somebody has been told of the end, or is not to be
	offered  bool // a notice is, or was, in the owner's list

	reading sync.Mutex // makes readings one after the other; held while the work is asked
}

// snapshot returns the state, without progress. The caller holds the lock.
func (j *job) snapshot() jobs.Snapshot {
	return jobs.Snapshot{
		ID: j.id, Kind: j.spec.Kind, Label: j.spec.Label, Owner: j.spec.Owner,
		Status: j.status, Detail: j.detail, StartedAt: j.startedAt, FinishedAt: j.finishedAt,
		OutputLimitBytes: j.spec.OutputLimitBytes,
	}
}

// settle ends a job. A job that has ended stays as it is.
func (r *registry) settle(j *job, o jobs.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if j.status.Terminal() {
		return
	}
	j.status, j.detail, j.finishedAt = o.Status, o.Detail, time.Now()
	own := r.owner(j.spec.Owner)
	delete(own.live, j)
	close(j.done)
	r.offer(j)
	if j.id != "" {
		for w := range own.watchers {
			signal(*w)
		}
		r.forgetOldest(j.spec.Owner)
	}
	r.tidy(j.spec.Owner)
}

// offer puts a notice into the owner's list if the job has ended and nobody has been told, or is about to be. The caller
// holds the lock.
func (r *registry) offer(j *job) {
	if j.id == "" || j.spec.Owner == "" || !j.status.Terminal() || j.reported || j.offered || j.holders > 0 {
		return
	}
	j.offered = true
	o := r.owner(j.spec.Owner)
	o.notices = append(o.notices, j)
}

// report notes that somebody has been told of a job's end, and takes the notice back if nobody has it yet. The caller
// holds the lock.
func (r *registry) report(j *job) {
	j.reported = true
	if o := r.owners[j.spec.Owner]; o != nil && j.offered {
		o.notices = slices.DeleteFunc(o.notices, func(n *job) bool { return n == j })
		r.tidy(j.spec.Owner)
	}
}

// release ends a holder's time; told says that it has reported the end. The caller holds the lock.
func (r *registry) release(j *job, told bool) {
	j.holders--
	if told {
		r.report(j)
	}
	r.offer(j)
}

// forgetOldest bounds what is remembered of an owner. The caller holds the lock.
func (r *registry) forgetOldest(session string) {
	ended := 0
	for _, j := range slices.Backward(r.jobs) {
		if j.spec.Owner != session || !j.status.Terminal() {
			continue
		}
		if ended++; ended > kept {
			r.forget(func(o *job) bool { return o == j })
			return
		}
	}
}

// forget drops jobs and their notices. The caller holds the lock.
func (r *registry) forget(which func(*job) bool) {
	r.jobs = slices.DeleteFunc(r.jobs, func(j *job) bool {
		if !which(j) {
			return false
		}
		delete(r.byID, j.id)
		r.report(j)
		return true
	})
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
