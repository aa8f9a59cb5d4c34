package jobstest

import (
	"context"
	"errors"
	"sync"

	"dsh/modules/jobs"
)

// tries is how often a check lets two things happen at one moment.
const tries = 300

var reportChecks = []check{
	{"the end of a job is not reported, or twice", func(s *suite) {
		w := s.work()
		j := s.starts(alice, w)
		s.wantNotices(alice)
		w.End(jobs.Completed, "exit code: 0")
		s.ends(alice, j.ID)
		s.List(alice)
		s.wantNotices(bob)
		s.wantNotices(alice, j.ID)
		s.wantNotices(alice)
	}},
	{"what was read is reported again", func(s *suite) {
		w := s.work()
		j := s.starts(alice, w)
		if r := s.read(alice, j.ID); r.Job.Status != jobs.Running {
			s.Errorf("it is %s", r.Job.Status)
		}
		w.End(jobs.Completed, "")
		s.ends(alice, j.ID)
		s.read(alice, j.ID)
		s.wantNotices(alice)
	}},
	{"an end that was waited for is reported again", func(s *suite) {
		for range tries {
			w := s.work()
			j := s.starts(alice, w)
			go w.End(jobs.Completed, "")
			if got, err := s.Wait(s.Context(), alice, j.ID, s.patience); err != nil || !got.Status.Terminal() {
				s.Fatalf("it is %s, %v", got.Status, err)
			}
			s.wantNotices(alice)
		}
	}},
	{"a killed job is reported again", func(s *suite) {
		for range tries {
			j := s.starts(alice, s.obedient())
			s.kill(alice, j.ID)
			s.ends(alice, j.ID)
			s.wantNotices(alice)
		}
	}},
	{"read at the moment of its end, a job is reported never or twice", func(s *suite) {
		for range tries {
			w := s.work()
			j := s.starts(alice, w)
			go w.End(jobs.Completed, "")
			r := s.read(alice, j.ID)
			s.ends(alice, j.ID)
			if notices := len(s.TakeNotices(alice)); (notices == 1) == r.Job.Status.Terminal() || notices > 1 {
				s.Fatalf("read as %s, and %d notices", r.Job.Status, notices)
			}
		}
	}},
	{"a wait that was given up swallows the end", func(s *suite) {
		for range tries {
			w := s.work()
			j := s.starts(alice, w)
			ctx, cancel := context.WithCancel(s.Context())
			var both sync.WaitGroup
			both.Go(cancel)
			both.Go(func() { w.End(jobs.Completed, "") })
			got, err := s.Wait(ctx, alice, j.ID, s.patience)
			both.Wait()
			s.ends(alice, j.ID)
			told := err == nil && got.Status.Terminal()
			if err != nil && !errors.Is(err, context.Canceled) {
				s.Fatal(err)
			}
			if notices := len(s.TakeNotices(alice)); (notices == 1) == told || notices > 1 {
				s.Fatalf("wait returned %s, %v, and %d notices", got.Status, err, notices)
			}
		}
	}},
	{"notices come in another order than the ends", func(s *suite) {
		works := []*Work{s.work(), s.work(), s.work()}
		var ids []string
		for _, w := range works {
			ids = append(ids, s.starts(alice, w).ID)
		}
		for _, i := range []int{2, 0, 1} {
			works[i].End(jobs.Failed, "")
			s.ends(alice, ids[i])
		}
		s.wantNotices(alice, ids[2], ids[0], ids[1])
	}},
	{"who watches is not told", func(s *suite) {
		ended, undo := s.Watch(alice)
		others, undoOthers := s.Watch(bob)
		defer undoOthers()
		told := func(c <-chan struct{}) bool {
			select {
			case <-c:
				return true
			default:
				return false
			}
		}
		w := s.work()
		j := s.starts(alice, w)
		if told(ended) {
			s.Error("told before the end")
		}
		w.End(jobs.Completed, "")
		s.eventually("the watcher is told", func() bool { return told(ended) })
		s.ends(alice, j.ID)
		killed := s.starts(alice, s.obedient())
		s.kill(alice, killed.ID)
		s.eventually("the watcher is told of a killed job", func() bool { return told(ended) })
		if told(others) {
			s.Error("another session was told")
		}
		undo()
		undo()
		late, undoLate := s.Watch(alice)
		defer undoLate()
		if !told(late) {
			s.Error("a late watcher is not told that there are notices")
		}
		s.wantNotices(alice, j.ID)
		s.kill(alice, s.starts(alice, s.obedient()).ID)
		s.eventually("the late watcher is told", func() bool { return told(late) })
		if told(ended) {
			s.Error("told after undo")
		}
	}},
}
