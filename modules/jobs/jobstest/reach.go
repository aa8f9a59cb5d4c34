package jobstest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"dsh/modules/jobs"
)

// calls are all that can be done to a job.
func (s *suite) calls(session, id string) map[string]error {
	_, find := s.Find(session, id)
	_, read := s.Read(session, id)
	_, wait := s.Wait(s.Context(), session, id, time.Millisecond)
	_, _, kill := s.Kill(session, id, "")
	return map[string]error{"Find": find, "Read": read, "Wait": wait, "Kill": kill}
}

var reachChecks = []check{
	{"another session reaches a job", func(s *suite) {
		w := s.obedient()
		w.Write("secret")
		j := s.starts(alice, w)
		for _, session := range []string{bob, ""} {
			for call, err := range s.calls(session, j.ID) {
				var foreign *jobs.ForeignError
				if !errors.As(err, &foreign) || err.Error() != "job bash-1 belongs to another session" {
					s.Errorf("%s: error %v, want a *ForeignError", call, err)
				}
			}
			s.wantIDs(session)
		}
		if r := s.read(alice, j.ID); r.Text != "secret" || len(w.Reasons()) > 0 {
			s.Errorf("afterwards the owner read %q, and it was cancelled with %q", r.Text, w.Reasons())
		}
	}},
	{"a job without an owner is closed to some", func(s *suite) {
		for _, session := range []string{"", alice, bob} {
			j := s.starts("", s.obedient())
			for call, err := range s.calls(session, j.ID) {
				if err != nil {
					s.Errorf("%s by %q: %v", call, session, err)
				}
			}
		}
		s.wantIDs(alice, "bash-1", "bash-2", "bash-3")
		s.eventually("all have ended", func() bool { return s.find("", "bash-3").Status.Terminal() })
		w := s.work()
		w.End(jobs.Completed, "")
		s.ends("", s.starts("", w).ID)
		for _, session := range []string{"", alice, bob} {
			s.wantNotices(session)
		}
	}},
	{"an unknown id passes for a job, or is not named", func(s *suite) {
		for call, err := range s.calls(alice, "bash-9") {
			if err == nil || err.Error() != "unknown job bash-9 (no background jobs)" {
				s.Errorf("%s: error %v", call, err)
			}
		}
		s.starts(alice, s.obedient())
		s.starts(bob, s.obedient())
		s.starts("", s.obedient())
		for _, id := range []string{"bash-999", "../x", "", "bash-01", "BASH-1", "bash-1 ", "a\nb"} {
			for call, err := range s.calls(alice, id) {
				var unknown *jobs.UnknownError
				if !errors.As(err, &unknown) || unknown.ID != id || fmt.Sprint(unknown.Known) != "[bash-1 bash-3]" ||
					!strings.HasSuffix(err.Error(), " (known jobs: bash-1, bash-3)") || strings.Contains(err.Error(), "\n") {
					s.Errorf("%s of %q: error %v", call, id, err)
				}
			}
		}
	}},
	{"output is lost or read twice", func(s *suite) {
		w := s.obedient()
		j := s.starts(alice, w)
		const pieces = 500
		var mu sync.Mutex
		var got strings.Builder
		counted := map[string]int{}
		read := func() bool {
			r, err := s.Read(alice, j.ID)
			if err != nil {
				s.Error(err)
				return false
			}
			mu.Lock()
			defer mu.Unlock()
			got.WriteString(r.Text)
			for _, word := range strings.Fields(r.Text) {
				counted[word]++
			}
			return !r.Job.Status.Terminal()
		}
		var readers sync.WaitGroup
		for range 3 {
			readers.Go(func() {
				for read() {
				}
			})
		}
		for i := range pieces {
			w.Write(fmt.Sprintf("%d\n", i))
		}
		w.End(jobs.Completed, "")
		readers.Wait()
		if len(counted) != pieces {
			s.Errorf("%d pieces of %d were read", len(counted), pieces)
		}
		for word, n := range counted {
			if n > 1 {
				s.Errorf("%s was read %d times", word, n)
			}
		}
	}},
	{"output is gone once the job is killed", func(s *suite) {
		w := s.obedient()
		j := s.starts(alice, w)
		w.Write("progress\n")
		s.kill(alice, j.ID)
		s.ends(alice, j.ID)
		if r := s.read(alice, j.ID); r.Text != "progress\n" || r.Job.Status != jobs.Killed {
			s.Errorf("got %q of a job that is %s", r.Text, r.Job.Status)
		}
		if r := s.read(alice, j.ID); r.Text != "" || r.Job.Status != jobs.Killed {
			s.Errorf("got %q once more, of a job that is %s", r.Text, r.Job.Status)
		}
	}},
	{"a job that has not ended says nothing of its progress", func(s *suite) {
		w := s.work()
		j := s.starts(alice, w)
		w.Say("half of it")
		r := s.read(alice, j.ID)
		for call, got := range map[string]jobs.Snapshot{"Find": s.find(alice, j.ID), "List": s.List(alice)[0], "Read": r.Job} {
			if got.Detail != "half of it" || got.Status != jobs.Running || !got.FinishedAt.IsZero() {
				s.Errorf("%s: got %+v", call, got)
			}
		}
		w.End(jobs.Completed, "exit code: 0")
		if got := s.ends(alice, j.ID); got.Detail != "exit code: 0" || got.FinishedAt.Before(got.StartedAt) {
			s.Errorf("got %+v", got)
		}
	}},
}
