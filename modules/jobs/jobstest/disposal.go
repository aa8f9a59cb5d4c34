package jobstest

import (
	"context"
	"errors"
	"strings"
	"time"

	"dsh/modules/jobs"
)

func (s *suite) stops(within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	return s.stop(ctx)
}

// receive waits for what a call in another goroutine returns.
func (s *suite) receive(c <-chan error) error {
	s.Helper()
	select {
	case err := <-c:
		return err
	case <-time.After(s.patience):
		s.Fatal("the call does not return")
		return nil
	}
}

var disposalChecks = []check{
	{"a session ends without its jobs", func(s *suite) {
		mine, other, nobodys := s.work(), s.obedient(), s.obedient()
		j := s.starts(alice, mine)
		done := s.starts(alice, s.obedient())
		s.kill(alice, done.ID)
		unread := s.work()
		s.starts(alice, unread)
		unread.End(jobs.Completed, "")
		s.ends(alice, "bash-3")
		b := s.starts(bob, other)
		s.starts("", nobodys)

		ended := make(chan error, 1)
		go func() { ended <- s.EndSession(s.Context(), alice) }()
		s.eventually("the job is cancelled", func() bool { return len(mine.Reasons()) > 0 })
		if _, err := s.Start(s.Context(), s.spec(alice, s.obedient())); err == nil {
			s.Error("a job was started for a session that ends")
		}
		select {
		case err := <-ended:
			s.Fatalf("the session has ended before its job: %v", err)
		case <-time.After(moment):
		}
		if got := mine.Reasons()[0]; got != "owner disposed" {
			s.Errorf("cancelled with %q", got)
		}
		mine.End(jobs.Killed, "")
		if err := s.receive(ended); err != nil {
			s.Error(err)
		}
		s.wantNotices(alice)
		s.wantIDs(alice, "bash-5")
		var unknown *jobs.UnknownError
		if _, err := s.Read(alice, j.ID); !errors.As(err, &unknown) {
			s.Errorf("error %v, want an *UnknownError", err)
		}
		s.wantIDs(bob, b.ID, "bash-5")
		if len(other.Reasons())+len(nobodys.Reasons()) > 0 {
			s.Errorf("others were cancelled too: %q, %q", other.Reasons(), nobodys.Reasons())
		}
		s.starts(alice, s.obedient())
	}},
	{"a session waits for ever for a job", func(s *suite) {
		w := s.work()
		j := s.starts(alice, w)
		ctx, cancel := context.WithTimeout(s.Context(), moment)
		defer cancel()
		err := s.EndSession(ctx, alice)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), j.ID) {
			s.Errorf("error %v, want one that names %s", err, j.ID)
		}
		w.End(jobs.Killed, "")
		s.eventually("the session ends", func() bool { return s.EndSession(s.Context(), alice) == nil && len(s.List(alice)) == 0 })
		s.wantNotices(alice)
	}},
	{"a job that takes its time keeps a session or the stop from ending", func(s *suite) {
		check := func(what string, end func(within time.Duration) error) {
			w := s.work()
			w.OnHurry = func() { w.End(jobs.Killed, "") }
			s.starts(alice, w)
			if err := end(40 * moment); err != nil || len(w.Reasons()) != 1 || !w.Hurried() {
				s.Errorf("%s: error %v, cancelled %d times, hurried %v", what, err, len(w.Reasons()), w.Hurried())
			}
		}
		check("the session", func(within time.Duration) error {
			ctx, cancel := context.WithTimeout(s.Context(), within)
			defer cancel()
			return s.EndSession(ctx, alice)
		})
		check("the stop", s.stops)
	}},
	{"the stop leaves a job, or cancels one after the other", func(s *suite) {
		works := []*Work{s.work(), s.work(), s.work()}
		for i, owner := range []string{alice, bob, ""} {
			s.starts(owner, works[i])
		}
		stopped := make(chan error, 1)
		go func() { stopped <- s.stops(s.patience) }()
		s.eventually("all are cancelled before any has ended", func() bool {
			for _, w := range works {
				if len(w.Reasons()) == 0 {
					return false
				}
			}
			return true
		})
		if got := works[0].Reasons()[0]; got != "jobs service disposed" {
			s.Errorf("cancelled with %q", got)
		}
		works[0].End(jobs.Killed, "")
		works[1].End(jobs.Killed, "")
		select {
		case err := <-stopped:
			s.Fatalf("the stop did not wait for the last: %v", err)
		case <-time.After(moment):
		}
		works[2].End(jobs.Killed, "")
		if err := s.receive(stopped); err != nil {
			s.Error(err)
		}
		if _, err := s.Start(s.Context(), s.spec(alice, s.obedient())); !errors.Is(err, jobs.ErrStopped) {
			s.Errorf("error %v, want ErrStopped", err)
		}
		s.wantNotices(alice)
	}},
	{"the stop does not name what has not ended", func(s *suite) {
		w := s.work()
		j := s.starts(alice, w)
		if err := s.stops(moment); err == nil || !strings.Contains(err.Error(), j.ID) {
			s.Errorf("error %v, want one that names %s", err, j.ID)
		}
		w.End(jobs.Killed, "")
		s.ends(alice, j.ID)
	}},
	{"the stop waits for what can not be cancelled", func(s *suite) {
		w := s.work()
		w.OnCancel = func(string) error { return errors.New("no way to reach it") }
		j := s.starts(alice, w)
		if err := s.stops(s.patience); err != nil {
			s.Error(err)
		}
		if got := s.find(alice, j.ID); got.Status != jobs.Failed || !strings.Contains(got.Detail, "work may be orphaned: no way to reach it") {
			s.Errorf("it is %s, %q", got.Status, got.Detail)
		}
		w.End(jobs.Completed, "")
	}},
	{"the stop leaves what is being prepared", func(s *suite) {
		w := s.obedient()
		inside := make(chan struct{})
		sp := s.spec(alice, nil)
		sp.Run = func(ctx context.Context) (jobs.Work, error) {
			close(inside)
			<-ctx.Done()
			return w, nil
		}
		started := make(chan error, 1)
		go func() {
			_, err := s.Start(s.Context(), sp)
			started <- err
		}()
		<-inside
		if err := s.stops(s.patience); err != nil {
			s.Error(err)
		}
		if err := s.receive(started); err == nil {
			s.Error("Start returned an id")
		}
		if len(w.Reasons()) == 0 {
			s.Error("the work was not cancelled")
		}
	}},
}
