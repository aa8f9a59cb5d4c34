package jobstest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"dsh/modules/jobs"
)

var admissionChecks = []check{
	{"a job over the limit is begun or takes an id", func(s *suite) {
		var first *Work
		for range Limit {
			first = s.obedient()
			s.starts(alice, first)
		}
		begun := false
		over := s.spec(alice, nil)
		over.Run = func(context.Context) (jobs.Work, error) {
			begun = true
			return s.obedient(), nil
		}
		_, err := s.Start(s.Context(), over)
		var limit *jobs.LimitError
		if !errors.As(err, &limit) || limit.Limit != Limit || !strings.Contains(err.Error(), fmt.Sprintf("(limit: %d)", Limit)) {
			s.Errorf("error %v, want a *LimitError with %d", err, Limit)
		}
		if begun {
			s.Error("the work was begun")
		}
		first.End(jobs.Completed, "")
		s.ends(alice, fmt.Sprintf("bash-%d", Limit))
		if j := s.starts(alice, s.obedient()); j.ID != fmt.Sprintf("bash-%d", Limit+1) {
			s.Errorf("the next job is %q", j.ID)
		}
	}},
	{"a killed job gives its place up before it has ended", func(s *suite) {
		stubborn := s.work()
		j := s.starts(alice, stubborn)
		for range Limit - 1 {
			s.starts(alice, s.obedient())
		}
		s.kill(alice, j.ID)
		var limit *jobs.LimitError
		if _, err := s.Start(s.Context(), s.spec(alice, s.obedient())); !errors.As(err, &limit) {
			s.Errorf("error %v, want a *LimitError", err)
		}
		stubborn.End(jobs.Killed, "")
		s.ends(alice, j.ID)
		s.starts(alice, s.obedient())
	}},
	{"starts at one moment exceed the limit", func(s *suite) {
		var all sync.WaitGroup
		var refused atomic.Int32
		hold := make(chan struct{})
		release := sync.OnceFunc(func() { close(hold) })
		defer release()
		for range 4 * Limit {
			all.Go(func() {
				sp := s.spec(alice, nil)
				sp.Run = func(context.Context) (jobs.Work, error) {
					<-hold
					return s.obedient(), nil
				}
				if _, err := s.Start(s.Context(), sp); err != nil {
					if refused.Add(1) == 3*Limit {
						release()
					}
				}
			})
		}
		s.eventually("all but those that the limit admits are refused", func() bool { return refused.Load() >= 3*Limit })
		all.Wait()
		if n := len(s.List(alice)); n != Limit {
			s.Errorf("%d jobs, want %d", n, Limit)
		}
	}},
	{"one owner takes another's place", func(s *suite) {
		for _, owner := range []string{alice, bob, ""} {
			for range Limit {
				s.starts(owner, s.obedient())
			}
			var limit *jobs.LimitError
			if _, err := s.Start(s.Context(), s.spec(owner, s.obedient())); !errors.As(err, &limit) {
				s.Errorf("owner %q: error %v, want a *LimitError", owner, err)
			}
		}
	}},
	{"a start that fails takes an id or a place", func(s *suite) {
		broken := errors.New("no such directory")
		for range 2 * Limit {
			sp := s.spec(alice, nil)
			sp.Run = func(context.Context) (jobs.Work, error) { return nil, broken }
			if _, err := s.Start(s.Context(), sp); !errors.Is(err, broken) {
				s.Fatalf("error %v, want the one of Run", err)
			}
			func() {
				defer func() { _ = recover() }()
				sp.Run = func(context.Context) (jobs.Work, error) { panic("a bug") }
				_, _ = s.Start(s.Context(), sp)
			}()
		}
		s.wantIDs(alice)
		if j := s.starts(alice, s.obedient()); j.ID != "bash-1" {
			s.Errorf("the first job is %q", j.ID)
		}
	}},
	{"ids are not counted by kind", func(s *suite) {
		s.starts(alice, s.obedient())
		sp := s.spec(bob, s.obedient())
		sp.Kind = "fetch"
		j, err := s.Start(s.Context(), sp)
		if err != nil || j.ID != "fetch-1" || j.Kind != "fetch" || j.Label != "make test" || j.Owner != bob || j.StartedAt.IsZero() {
			s.Errorf("got %+v, %v", j, err)
		}
		if j := s.starts(bob, s.obedient()); j.ID != "bash-2" {
			s.Errorf("the second of its kind is %q", j.ID)
		}
	}},
	{"a job starts that nobody can look after", func(s *suite) {
		again := s.Control()
		s.undo()
		s.undo()
		s.starts(alice, s.obedient())
		again()
		if _, err := s.Start(s.Context(), s.spec(alice, s.obedient())); !errors.Is(err, jobs.ErrNoController) {
			s.Errorf("error %v, want ErrNoController", err)
		}
	}},
	{"a spec is not checked", func(s *suite) {
		for _, c := range []struct {
			want string
			edit func(*jobs.Spec)
		}{
			{"invalid job kind: expected a non-empty string", func(sp *jobs.Spec) { sp.Kind, sp.Label = " ", "" }},
			{"invalid job label: expected a non-empty string", func(sp *jobs.Spec) { sp.Label = "\n" }},
			{"invalid outputLimitBytes: expected a positive safe integer, got -1", func(sp *jobs.Spec) { sp.OutputLimitBytes = -1 }},
		} {
			sp := s.spec(alice, nil)
			sp.Run = func(context.Context) (jobs.Work, error) {
				s.Errorf("begun in spite of: %s", c.want)
				return s.obedient(), nil
			}
			c.edit(&sp)
			_, err := s.Start(s.Context(), sp)
			var invalid *jobs.InvalidError
			if !errors.As(err, &invalid) || err.Error() != c.want {
				s.Errorf("error %v, want %s", err, c.want)
			}
		}
	}},
	{"an ended context begins a job", func(s *suite) {
		why := errors.New("the user pressed a key")
		ctx, cancel := context.WithCancelCause(s.Context())
		cancel(why)
		sp := s.spec(alice, nil)
		sp.Run = func(context.Context) (jobs.Work, error) {
			s.Error("the work was begun")
			return s.obedient(), nil
		}
		if _, err := s.Start(ctx, sp); !errors.Is(err, why) {
			s.Errorf("error %v, want the context's cause", err)
		}
	}},
	{"a caller who has gone leaves a job running", func(s *suite) {
		why := errors.New("the user pressed a key")
		ctx, cancel := context.WithCancelCause(s.Context())
		w := s.work()
		sp := s.spec(alice, nil)
		sp.Run = func(context.Context) (jobs.Work, error) {
			cancel(why)
			return w, nil
		}
		if _, err := s.Start(ctx, sp); !errors.Is(err, why) {
			s.Errorf("error %v, want the context's cause", err)
		}
		s.wantIDs(alice)
		s.eventually("the work is cancelled", func() bool { return len(w.Reasons()) > 0 })
		for range Limit - 1 {
			s.starts(alice, s.obedient())
		}
		if _, err := s.Start(s.Context(), s.spec(alice, s.obedient())); err == nil {
			s.Error("it gave its place up before it had ended")
		}
		w.End(jobs.Killed, "")
		s.eventually("the place is free", func() bool {
			_, err := s.Start(s.Context(), s.spec(alice, s.obedient()))
			return err == nil
		})
		s.wantNotices(alice)
	}},
	{"a job ends with the context that started it", func(s *suite) {
		ctx, cancel := context.WithCancel(s.Context())
		w := s.obedient()
		j, err := s.Start(ctx, s.spec(alice, w))
		if err != nil {
			s.Fatal(err)
		}
		cancel()
		if _, err := s.Wait(s.Context(), alice, j.ID, moment); err != nil {
			s.Fatal(err)
		}
		if got := s.find(alice, j.ID); got.Status != jobs.Running || len(w.Reasons()) > 0 {
			s.Errorf("it is %s, cancelled with %q", got.Status, w.Reasons())
		}
	}},
}
