package jobstest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"dsh/internal/testkit"
	"dsh/modules/jobs"
)

// Limit is how many jobs of one owner the registries under test admit.
const Limit = 3

// Subject is a registry under test. Stop is what its row does when it stops; the suite calls it at most once.
type Subject struct {
	Registry jobs.Registry
	Stop     func(context.Context) error
}

// Run tests that the registries which newSubject makes, one for each check and without jobs or a controller, keep what the
// contract promises.
func Run(t *testing.T, newSubject func(testing.TB) Subject) {
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(newSuite(t, newSubject(t), patience))
		})
	}
}

type check struct {
	name string // what goes wrong
	run  func(*suite)
}

func checks() []check {
	return slices.Concat(admissionChecks, reachChecks, endChecks, reportChecks, disposalChecks)
}

// suite is one check's registry with the means to say what is wrong with it.
type suite struct {
	testing.TB
	jobs.Registry
	stop     func(context.Context) error
	undo     func() // takes the controller out
	patience time.Duration

	mu      sync.Mutex
	stopped bool
	works   []*Work
}

func newSuite(t testing.TB, s Subject, patience time.Duration) *suite {
	u := &suite{TB: t, Registry: s.Registry, stop: s.Stop, patience: patience}
	u.undo = s.Registry.Control()
	t.Cleanup(func() {
		u.mu.Lock()
		works, stopped := u.works, u.stopped
		u.mu.Unlock()
		for _, w := range works {
			w.End(jobs.Killed, "the check has ended")
		}
		if !stopped {
			_ = u.stops(patience)
		}
	})
	return u
}

// work returns work that goes on until End is called, or the check has ended.
func (s *suite) work() *Work {
	w := NewWork()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.works = append(s.works, w)
	return w
}

// obedient returns work that ends when it is cancelled.
func (s *suite) obedient() *Work {
	w := s.work()
	w.OnCancel = func(reason string) error {
		w.End(jobs.Killed, reason)
		return nil
	}
	return w
}

// patience is how long anything may take that takes no time on an idle machine; moment is long enough for what is wrong to
// show, mostly.
const (
	patience = 20 * time.Second
	moment   = 30 * time.Millisecond
)

// Sessions of the checks.
const (
	alice = "session-a"
	bob   = "session-b"
)

func (s *suite) spec(owner string, w *Work) jobs.Spec {
	return jobs.Spec{Kind: "bash", Label: "make test", Owner: owner, Run: w.Run()}
}

func (s *suite) starts(owner string, w *Work) jobs.Snapshot {
	s.Helper()
	j, err := s.Start(s.Context(), s.spec(owner, w))
	if err != nil {
		s.Fatalf("Start: %v", err)
	}
	return j
}

func (s *suite) find(session, id string) jobs.Snapshot {
	s.Helper()
	j, err := s.Find(session, id)
	if err != nil {
		s.Fatalf("Find(%q): %v", id, err)
	}
	return j
}

// ends waits until a job is in a terminal state, without being told of it.
func (s *suite) ends(session, id string) jobs.Snapshot {
	s.Helper()
	var j jobs.Snapshot
	s.eventually("the job has ended", func() bool {
		j = s.find(session, id)
		return j.Status.Terminal()
	})
	return j
}

func (s *suite) read(session, id string) jobs.Reading {
	s.Helper()
	r, err := s.Read(session, id)
	if err != nil {
		s.Fatalf("Read(%q): %v", id, err)
	}
	return r
}

func (s *suite) kill(session, id string) (jobs.Snapshot, bool) {
	s.Helper()
	j, asked, err := s.Kill(session, id, "enough")
	if err != nil {
		s.Fatalf("Kill(%q): %v", id, err)
	}
	return j, asked
}

func (s *suite) eventually(what string, condition func() bool) {
	s.Helper()
	testkit.Eventually(s.TB, s.patience, what, condition)
}

func (s *suite) wantIDs(session string, want ...string) {
	s.Helper()
	var got []string
	for _, j := range s.List(session) {
		got = append(got, j.ID)
	}
	if !slices.Equal(got, want) {
		s.Errorf("%s has the jobs %q, want %q", session, got, want)
	}
}

func (s *suite) wantNotices(session string, want ...string) {
	s.Helper()
	var got []string
	for _, n := range s.TakeNotices(session) {
		got = append(got, n.Job.ID)
		if !n.Job.Status.Terminal() {
			s.Errorf("a notice of a job that is %s", n.Job.Status)
		}
	}
	if !slices.Equal(got, want) {
		s.Errorf("%s has notices of %q, want %q", session, got, want)
	}
}
