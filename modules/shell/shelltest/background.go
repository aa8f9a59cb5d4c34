package shelltest

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"dsh/modules/shell"
)

// backgroundChecks are about started commands.
var backgroundChecks = []check{
	{"a started command ends with the context that started it", func(s *suite) {
		spec := s.resolve(shell.Request{Command: "echo ready; until [ -e go ]; do sleep 0.02; done; echo done; exit 3"})
		ctx, cancel := context.WithCancel(s.Context())
		p, err := s.Start(ctx, spec)
		if err != nil {
			cancel()
			s.Fatal(err)
		}
		if st := p.Status(); st.State != shell.Running || st.ExitCode != nil || st.Signal != nil || st.Err != nil {
			s.Errorf("the status of a running command is %+v", st)
		}
		cancel()
		var out strings.Builder
		s.eventually("ready", func() bool {
			out.WriteString(p.ReadOutput().Stdout)
			return out.String() == "ready\n" || p.Status().State != shell.Running
		})
		s.create(filepath.Join(spec.Workdir, "go"))
		st := s.settles(p)
		if st.State != shell.Completed || st.ExitCode == nil || *st.ExitCode != 3 || st.Signal != nil || st.Err != nil {
			s.Errorf("state %q, %s, error %v, want completed with 3", st.State, ending(st.ExitCode, st.Signal), st.Err)
		}
		s.wantText("stdout", out.String()+p.ReadOutput().Stdout, "ready\ndone\n")
	}},
	{"an ended context starts a command", func(s *suite) {
		spec := s.resolve(shell.Request{Command: "touch marker"})
		why := errors.New("the user pressed a key")
		ctx, cancel := context.WithCancelCause(s.Context())
		cancel(why)
		p, err := s.Start(ctx, spec)
		if err == nil {
			s.settles(p)
		}
		if !errors.Is(err, why) {
			s.Errorf("error %v, want the context's cause", err)
		}
		if s.exists(filepath.Join(spec.Workdir, "marker")) {
			s.Error("the command was run")
		}
	}},
	{"a started command times out", func(s *suite) {
		st := s.settles(s.starts(shell.Request{Command: "sleep 0.3; exit 5", Timeout: pointer(20 * time.Millisecond)}))
		if st.State != shell.Completed || st.ExitCode == nil || *st.ExitCode != 5 {
			s.Errorf("state %q, %s, want completed with 5", st.State, ending(st.ExitCode, st.Signal))
		}
	}},
	{"output is read twice", func(s *suite) {
		p := s.starts(shell.Request{Command: "seq 4000; seq 3000 >&2", StdoutMaxBytes: 64_000})
		var mu sync.Mutex
		var outBytes, errBytes int
		read := func() {
			d := p.ReadOutput()
			mu.Lock()
			defer mu.Unlock()
			outBytes += len(d.Stdout)
			errBytes += len(d.Stderr)
			if d.Lossy || d.StdoutSpillPath != "" || d.StderrSpillPath != "" {
				s.Errorf("what memory holds is lossy (%v) or spilled (%q, %q)", d.Lossy, d.StdoutSpillPath, d.StderrSpillPath)
			}
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for {
					select {
					case <-p.Done():
						return
					default:
						read()
						p.Status()
					}
				}
			})
		}
		s.settles(p)
		wg.Wait()
		read()
		if outBytes != 18_893 || errBytes != 13_893 {
			s.Errorf("read %d and %d bytes, want 18893 and 13893", outBytes, errBytes)
		}
		if d := p.ReadOutput(); d.Stdout != "" || d.Stderr != "" || d.Lossy {
			s.Errorf("after the end there was still %+v", d)
		}
	}},
	{"a character is torn between two reads", func(s *suite) {
		spec := s.resolve(shell.Request{Command: `for b in A '\344' '\275' '\240' B '\360' '\237'; do
			printf "$b"; n=$((n + 1)); touch "wrote$n"; until [ -e "next$n" ]; do sleep 0.01; done; done`})
		p, err := s.Start(s.Context(), spec)
		if err != nil {
			s.Fatal(err)
		}
		var got strings.Builder
		for i, want := range []string{"A", "A", "A", "A你", "A你B", "A你B", "A你B"} {
			n := string(rune('1' + i))
			s.eventually("byte "+n, func() bool { return s.exists(filepath.Join(spec.Workdir, "wrote"+n)) })
			s.eventually("text "+n, func() bool {
				got.WriteString(p.ReadOutput().Stdout)
				return len(got.String()) >= len(want)
			})
			s.wantText("the output so far", got.String(), want)
			s.create(filepath.Join(spec.Workdir, "next"+n))
		}
		s.settles(p)
		rest := p.ReadOutput().Stdout
		if rest == "" || strings.Trim(rest, "\ufffd") != "" {
			s.Errorf("half a character at the end became %q, want U+FFFD", rest)
		}
	}},
	{"lost output is not owned up to", func(s *suite) {
		p := s.starts(shell.Request{Command: `yes 你 | head -n 5000 | tr -d '\n'; echo .`, StdoutMaxBytes: 1000})
		s.settles(p)
		d := p.ReadOutput()
		if !d.Lossy || len(d.Stdout) > 1000 || len(d.Stdout) < 997 || strings.Trim(d.Stdout, "你") != ".\n" {
			s.Errorf("lossy %v, %d bytes: %q", d.Lossy, len(d.Stdout), abbreviated(d.Stdout))
		}
		s.wantSpill(d.StdoutSpillPath, []byte(strings.Repeat("你", 5000)+".\n"))
		if d := p.ReadOutput(); d.Lossy || d.Stdout != "" {
			s.Errorf("the next read is lossy (%v) or not empty: %q", d.Lossy, abbreviated(d.Stdout))
		}
	}},
	{"a killed command goes on", func(s *suite) {
		sleep := sleeper()
		p := s.starts(shell.Request{Command: sleep + " & " + sleep})
		s.eventually("the sleeper runs", func() bool { return s.alive(sleep) })
		short, cancel := context.WithTimeout(s.Context(), 10*time.Millisecond)
		defer cancel()
		if err := p.Quiesce(short); !errors.Is(err, context.DeadlineExceeded) {
			s.Errorf("Quiesce of a running command: error %v, want the context's", err)
		}
		if !p.Kill() {
			s.Error("Kill of a running command returned false")
		}
		if st := p.Status(); st.State != shell.Killed {
			s.Errorf("state %q right after Kill, want killed", st.State)
		}
		if p.Kill() {
			s.Error("a second Kill returned true")
		}
		st := s.settles(p)
		if st.State != shell.Killed || st.Err != nil {
			s.Errorf("state %q, error %v, want killed", st.State, st.Err)
		}
		s.wantSignal(st.ExitCode, st.Signal, "SIGTERM", 15)
		s.quiesces(p)
		if s.alive(sleep) {
			s.Error("a process of the killed command is still there")
		}
	}},
	{"a hurried command keeps its grace", func(s *suite) {
		deaf := func() (shell.Process, string) {
			sleep := sleeper()
			p := s.starts(shell.Request{Command: `trap "" TERM; ` + sleep})
			s.eventually("the sleeper runs", func() bool { return s.alive(sleep) })
			return p, sleep
		}
		calm, stays := deaf()
		p, goes := deaf()
		calm.Kill()
		p.Kill()
		p.Hurry()
		s.quiesces(p)
		if s.alive(goes) || !s.alive(stays) {
			s.Errorf("the hurried one is there: %v; the other one: %v", s.alive(goes), s.alive(stays))
		}
		calm.Hurry()
		s.quiesces(calm)
	}},
	{"an exit after Kill passes for completion", func(s *suite) {
		p := s.starts(shell.Request{Command: "trap 'exit 0' TERM; echo ready; " + sleeper() + " & wait"})
		s.eventually("ready", func() bool { return p.ReadOutput().Stdout != "" })
		p.Kill()
		st := s.settles(p)
		if st.State != shell.Killed || st.ExitCode == nil || *st.ExitCode != 0 {
			s.Errorf("state %q, %s, want killed with 0", st.State, ending(st.ExitCode, st.Signal))
		}
	}},
	{"Kill of an ended command says that it did something", func(s *suite) {
		p := s.starts(shell.Request{Command: "true"})
		s.settles(p)
		if p.Kill() {
			s.Error("Kill returned true")
		}
		if st := p.Status(); st.State != shell.Completed || st.ExitCode == nil || *st.ExitCode != 0 {
			s.Errorf("state %q, %s, want completed with 0", st.State, ending(st.ExitCode, st.Signal))
		}
		s.quiesces(p)
	}},
	{"what survives its command survives Kill", func(s *suite) {
		sleep := sleeper()
		p := s.starts(shell.Request{Command: sleep + " >/dev/null 2>&1 & exit 4"})
		s.settles(p)
		s.eventually("the sleeper runs", func() bool { return s.alive(sleep) })
		if p.Kill() {
			s.Error("Kill of an ended command returned true")
		}
		s.quiesces(p)
		if s.alive(sleep) {
			s.Error("a process of the command is still there")
		}
		if st := p.Status(); st.State != shell.Completed || st.ExitCode == nil || *st.ExitCode != 4 {
			s.Errorf("state %q, %s, want completed with 4", st.State, ending(st.ExitCode, st.Signal))
		}
	}},
	{"death by a signal passes for completion", func(s *suite) {
		st := s.settles(s.starts(shell.Request{Command: "kill -KILL $$"}))
		s.wantSignal(st.ExitCode, st.Signal, "SIGKILL", 9)
		if st.Signal != nil && st.State != shell.Killed {
			s.Errorf("state %q, want killed", st.State)
		}
	}},
}

func (s *suite) quiesces(p shell.Process) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	if err := p.Quiesce(ctx); err != nil {
		s.Errorf("Quiesce: %v", err)
	}
}
