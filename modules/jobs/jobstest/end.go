package jobstest

import (
	"context"
	"errors"
	"slices"
	"time"

	"dsh/modules/jobs"
)

var endChecks = []check{
	{"a job is over when it was asked to end", func(s *suite) {
		w := s.work()
		j := s.starts(alice, w)
		got, asked := s.kill(alice, j.ID)
		if got.Status != jobs.Stopping || !asked {
			s.Errorf("after Kill it is %s, asked %v, want stopping", got.Status, asked)
		}
		if r := s.read(alice, j.ID); r.Job.Status != jobs.Stopping {
			s.Errorf("read: it is %s, want stopping", r.Job.Status)
		}
		if _, asked, err := s.Kill(alice, j.ID, "now"); !asked || err != nil {
			s.Errorf("a second Kill: asked %v, error %v", asked, err)
		}
		if got := w.Reasons(); !slices.Equal(got, []string{"enough", "now"}) {
			s.Errorf("cancelled with %q", got)
		}
		w.End(jobs.Killed, "signal: SIGKILL")
		if got := s.ends(alice, j.ID); got.Status != jobs.Killed || got.Detail != "signal: SIGKILL" {
			s.Errorf("it is %s, %s", got.Status, got.Detail)
		}
	}},
	{"Kill of an ended job says that it did something", func(s *suite) {
		w := s.work()
		j := s.starts(alice, w)
		w.End(jobs.Completed, "exit code: 3")
		s.ends(alice, j.ID)
		got, asked := s.kill(alice, j.ID)
		if asked || got.Status != jobs.Completed || got.Detail != "exit code: 3" || len(w.Reasons()) > 0 {
			s.Errorf("asked %v, it is %s, %s; cancelled with %q", asked, got.Status, got.Detail, w.Reasons())
		}
	}},
	{"a job that can not be cancelled counts as stopping", func(s *suite) {
		broken := errors.New("no way to reach it")
		w := s.work()
		w.OnCancel = func(string) error { return broken }
		j := s.starts(alice, w)
		if _, asked, err := s.Kill(alice, j.ID, ""); asked || !errors.Is(err, broken) {
			s.Errorf("asked %v, error %v, want that of Cancel", asked, err)
		}
		if got := s.find(alice, j.ID); got.Status != jobs.Running {
			s.Errorf("it is %s, want running", got.Status)
		}
		w.End(jobs.Completed, "")
		s.ends(alice, j.ID)
		s.wantNotices(alice, j.ID)
	}},
	{"an outcome that is none passes", func(s *suite) {
		w := s.work()
		j := s.starts(alice, w)
		w.End(jobs.Running, "")
		if got := s.ends(alice, j.ID); got.Status != jobs.Failed || got.Detail == "" {
			s.Errorf("it is %s, %q, want failed", got.Status, got.Detail)
		}
	}},
	{"Wait does not return with the end or the timeout", func(s *suite) {
		w := s.work()
		j := s.starts(alice, w)
		begin := time.Now()
		got, err := s.Wait(s.Context(), alice, j.ID, moment)
		if took := time.Since(begin); err != nil || got.Status != jobs.Running || took < moment || took > s.patience {
			s.Errorf("timeout: %s, %v after %v", got.Status, err, took)
		}
		time.AfterFunc(moment, func() { w.End(jobs.Completed, "exit code: 0") })
		if got, err := s.Wait(s.Context(), alice, j.ID, s.patience); err != nil || got.Status != jobs.Completed || got.Detail != "exit code: 0" {
			s.Errorf("end: %s %q, %v", got.Status, got.Detail, err)
		}
		if got, err := s.Wait(s.Context(), alice, j.ID, s.patience); err != nil || got.Status != jobs.Completed {
			s.Errorf("afterwards: %s, %v", got.Status, err)
		}
	}},
	{"Wait ignores its context or takes any timeout", func(s *suite) {
		j := s.starts(alice, s.obedient())
		why := errors.New("the user pressed a key")
		ctx, cancel := context.WithCancelCause(s.Context())
		time.AfterFunc(moment, func() { cancel(why) })
		if _, err := s.Wait(ctx, alice, j.ID, s.patience); !errors.Is(err, why) {
			s.Errorf("error %v, want the context's cause", err)
		}
		if _, err := s.Wait(ctx, alice, j.ID, s.patience); !errors.Is(err, why) {
			s.Errorf("error %v, want the cause of a context that had ended", err)
		}
		for _, timeout := range []time.Duration{0, -time.Second} {
			var invalid *jobs.InvalidError
			if _, err := s.Wait(s.Context(), alice, j.ID, timeout); !errors.As(err, &invalid) {
				s.Errorf("timeout %v: error %v, want an *InvalidError", timeout, err)
			}
		}
	}},
}
