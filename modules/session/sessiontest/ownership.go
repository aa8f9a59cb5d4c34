package sessiontest

import (
	"context"
	"path/filepath"
	"strings"
	"sync"

	"dsh/internal/testkit"
	"dsh/modules/sandbox"
	"dsh/modules/session"
)

var ownershipChecks = []check{
	{"a second host opens an open session", func(s *suite) {
		first, second := s.open(), s.open()
		open := s.begin(first, turn(1, "a", "b")...)
		id := open.Header().ID
		for what, st := range map[string]session.Store{"its own host": first, "another host": second} {
			_, err := st.Open(s.Context(), id)
			s.wantErr("Open by "+what, err, session.ErrLocked)
		}
		s.close(open)
		again, err := second.Open(s.Context(), id)
		if err != nil {
			s.Fatalf("Open after Close: %v", err)
		}
		_, err = first.Open(s.Context(), id)
		s.wantErr("Open by the first host", err, session.ErrLocked)
		s.append(again, turn(2, "c", "d")...)
	}},
	{"two hosts win a race for a session", func(s *suite) {
		open := s.begin(s.open(), turn(1, "a", "b")...)
		s.close(open)
		var mu sync.Mutex
		var won int
		var wg sync.WaitGroup
		for range 6 {
			st := s.open()
			wg.Go(func() {
				_, err := st.Open(s.Context(), open.Header().ID)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won++
				} else {
					s.wantErr("Open", err, session.ErrLocked)
				}
			})
		}
		wg.Wait()
		if won != 1 {
			s.Errorf("%d hosts opened the session, want 1", won)
		}
	}},
	{"a live session is not found, or found when it is closed", func(s *suite) {
		st := s.open()
		open := s.begin(st)
		id := open.Header().ID
		live, ok := st.Live(id)
		if !ok {
			s.Fatal("Live finds nothing")
		}
		s.append(live, turn(1, "a", "b")...)
		if got := len(open.Events()); got != 6 {
			s.Errorf("the session has %d events of the live one's 6", got)
		}
		if _, ok := s.open().Live(id); ok {
			s.Error("Live of another host finds it")
		}
		s.close(open)
		if _, ok := st.Live(id); ok {
			s.Error("Live finds a closed session")
		}
	}},
	{"a closed session is written to", func(s *suite) {
		open := s.begin(s.open(), turn(1, "a", "b")...)
		if err := open.Sync(); err != nil {
			s.Errorf("Sync: %v", err)
		}
		s.close(open)
		s.close(open)
		_, err := open.Append(&session.TurnStart{Turn: 2})
		s.wantErr("Append after Close", err, session.ErrClosed)
		s.wantErr("Sync after Close", open.Sync(), session.ErrClosed)
		if got := len(s.reads(open.Header().ID).Events); got != 6 {
			s.Errorf("the log has %d events, want 6", got)
		}
	}},
	{"an id is given twice", func(s *suite) {
		open := s.begin(s.open(), turn(1, "a", "b")...)
		n := session.New{ID: open.Header().ID, CWD: open.Header().CWD}
		_, err := s.open().Create(s.Context(), n)
		s.wantErr("Create with an id that is taken", err, session.ErrExists)
		other := s.begin(s.open())
		if other.Header().ID == open.Header().ID || !strings.HasPrefix(other.Header().ID, "session-") {
			s.Errorf("the ids are %q and %q", open.Header().ID, other.Header().ID)
		}
	}},
	{"a session gets an id or a directory that cannot be one", func(s *suite) {
		dir := s.TempDir()
		for _, n := range []session.New{
			{CWD: ""},
			{CWD: "a/b"},
			{ID: "..", CWD: dir},
			{ID: "../x", CWD: dir},
			{ID: "a/b", CWD: dir},
			{ID: "a\x00", CWD: dir},
			{ID: ".hidden", CWD: dir},
			{ID: strings.Repeat("x", 200), CWD: dir},
			{ID: filepath.Join(dir, "x"), CWD: dir},
		} {
			_, err := s.open().Create(s.Context(), n)
			s.wantInvalid("Create", err)
		}
		for _, id := range []string{"", "..", "../x", "nobody", "a/b"} {
			_, err := s.open().Open(s.Context(), id)
			s.wantErr("Open "+id, err, session.ErrNotFound)
			_, err = s.open().Read(s.Context(), id)
			s.wantErr("Read "+id, err, session.ErrNotFound)
		}
	}},
	{"a call that comes cancelled does something", func(s *suite) {
		open := s.begin(s.open(), turn(1, "a", "b")...)
		s.close(open)
		ctx, cancel := context.WithCancelCause(s.Context())
		cancel(errGone)
		st := s.open()
		_, err := st.Create(ctx, session.New{CWD: s.TempDir()})
		s.wantErr("Create", err, errGone)
		_, err = st.Open(ctx, open.Header().ID)
		s.wantErr("Open", err, errGone)
		s.resumes(open.Header().ID) // nobody has it
	}},
	{"the list is out of order or says too little", func(s *suite) {
		if list, err := s.open().List(s.Context()); err != nil || len(list) != 0 {
			s.Fatalf("List of nothing: %v, %v", list, err)
		}
		st := s.open()
		tasks := map[string]string{}
		var open []session.Session
		for _, task := range []string{"first", "second"} {
			one := s.begin(st, turn(1, task, "x")...)
			tasks[one.Header().ID] = task
			open = append(open, one)
		}
		for _, last := range open { // the clock of the place may be coarse
			testkit.Eventually(s.TB, s.patience, "the session that changed last is first", func() bool {
				s.append(last, &session.SandboxMode{Mode: sandbox.ReadOnly})
				list, err := s.open().List(s.Context())
				return err == nil && len(list) == 2 && list[0].ID == last.Header().ID
			})
		}
		list, _ := s.open().List(s.Context())
		for _, got := range list {
			if got.Task != tasks[got.ID] || got.CWD == "" || got.CreatedAt.IsZero() || got.Err != nil {
				s.Errorf("the entry is %+v, want the task %q", got, tasks[got.ID])
			}
		}
	}},
}
