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

// endChecks are about how foreground commands end, and who is said to have ended them.
var endChecks = []check{
	{"a failing command is an error", func(s *suite) {
		for command, code := range map[string]int{"true": 0, "false": 1, "exit 37": 37, "grep -q no_such_word /etc/hosts": 1} {
			r := s.runs(shell.Request{Command: command})
			s.wantExit(r, code)
			s.wantUnended(r)
			s.wantText("output of "+command, r.Stdout.Text+r.Stderr.Text, "")
		}
		if r := s.runs(shell.Request{Command: "true"}); r.Range == "" || r.DurationMs < 0 || r.TimeoutMs <= 0 || r.Survivors != 0 {
			s.Errorf("range %q, durationMs %d, timeoutMs %d, survivors %d", r.Range, r.DurationMs, r.TimeoutMs, r.Survivors)
		}
	}},
	{"a command that kills itself is said to have been ended", func(s *suite) {
		r := s.runs(shell.Request{Command: "kill -TERM $$; " + sleeper()})
		s.wantSignal(r.ExitCode, r.Signal, "SIGTERM", 15)
		s.wantUnended(r)
	}},
	{"a timeout leaves processes", func(s *suite) {
		var wg sync.WaitGroup
		for _, shape := range []string{
			"%", "%; true", "% & wait", "(%)", "% | cat", "until [ -e never_there ]; do sleep 0.05; done; %",
			"mkfifo p; (while :; do echo child; sleep 0.05; done) >p & cat p; %",
		} {
			wg.Go(func() {
				sleep := sleeper()
				spec := s.resolve(shell.Request{
					Command: strings.ReplaceAll(shape, "%", sleep), Timeout: pointer(300 * time.Millisecond),
				})
				ctx, cancel := context.WithCancel(s.Context())
				defer cancel()
				begin := time.Now()
				r, err := s.Run(ctx, spec)
				if err != nil {
					s.Errorf("%s: %v", shape, err)
					return
				}
				s.wantTimedOut(r)
				if r.TimeoutMs != 300 || r.DurationMs < 300 || r.DurationMs > time.Since(begin).Milliseconds()+1 {
					s.Errorf("%s: timeoutMs %d, durationMs %d", shape, r.TimeoutMs, r.DurationMs)
				}
				if took := time.Since(begin); took > patience {
					s.Errorf("%s: took %v", shape, took)
				}
				if r.Survivors != 0 || s.alive(sleep) {
					s.Errorf("%s: %d survivors, the sleeper alive: %v", shape, r.Survivors, s.alive(sleep))
				}
			})
		}
		wg.Wait()
	}},
	{"a command that ignores TERM goes on", func(s *suite) {
		sleep := sleeper()
		r := s.runs(shell.Request{
			Command: "trap '' TERM; " + sleep + "; " + sleep + "; " + sleep, Timeout: pointer(200 * time.Millisecond),
		})
		s.wantTimedOut(r)
		s.wantSignal(r.ExitCode, r.Signal, "SIGKILL", 9)
		if s.alive(sleep) {
			s.Error("what ignores TERM is still there")
		}
	}},
	{"exit 0 after a timeout passes for success", func(s *suite) {
		r := s.runs(shell.Request{
			Command: "trap 'exit 0' TERM; " + sleeper() + " & wait", Timeout: pointer(300 * time.Millisecond),
		})
		s.wantTimedOut(r)
		s.wantExit(r, 0)
	}},
	{"a cancelled command goes on", func(s *suite) {
		ctx, cancel := context.WithCancel(s.Context())
		defer cancel()
		sleep := sleeper()
		spec := s.resolve(shell.Request{Command: "echo ready; " + sleep, Progress: func(shell.Stream, []byte) { cancel() }})
		r := s.runSpec(ctx, spec)
		s.wantAborted(r)
		s.wantText("stdout", r.Stdout.Text, "ready\n")
		if s.alive(sleep) {
			s.Error("the command is still there")
		}
	}},
	{"the caller's deadline is taken for the timeout", func(s *suite) {
		ctx, cancel := context.WithTimeout(s.Context(), 200*time.Millisecond)
		defer cancel()
		s.wantAborted(s.runSpec(ctx, s.resolve(shell.Request{Command: sleeper()})))
	}},
	{"a later cancel hides the timeout", func(s *suite) {
		ctx, cancel := context.WithCancel(s.Context())
		defer cancel()
		spec := s.resolve(shell.Request{
			Command: "mkfifo p; exec 9<>p; trap 'echo dying; read -rt 0.5 -u 9; exit 0' TERM; while :; do read -rt 0.05 -u 9; done",
			Timeout: pointer(500 * time.Millisecond),
			// TERM came from the timeout.
			Progress: func(shell.Stream, []byte) { cancel() },
		})
		s.wantTimedOut(s.runSpec(ctx, spec))
	}},
	{"a later timeout hides the cancel", func(s *suite) {
		for range 5 {
			ctx, cancel := context.WithCancel(s.Context())
			defer cancel()
			begin, cancelled := time.Now(), time.Time{}
			r := s.runSpec(ctx, s.resolve(shell.Request{
				Command: "mkfifo p; exec 9<>p; trap 'read -rt 1.1 -u 9; exit 0' TERM; echo ready; while :; do read -rt 0.05 -u 9; done",
				Timeout: pointer(time.Second),
				Progress: func(shell.Stream, []byte) {
					cancelled = time.Now()
					cancel()
				},
			}))
			if cancelled.IsZero() || cancelled.Sub(begin) > 800*time.Millisecond {
				continue // a machine so busy that the timeout may have come first
			}
			s.wantAborted(r)
			if r.DurationMs < 1000 {
				s.Errorf("the command took %d ms to die, want longer than its timeout", r.DurationMs)
			}
			return
		}
		s.Skip("the machine is too busy: a shell needs most of a second to start")
	}},
	{"an ended context runs the command", func(s *suite) {
		cancelled, cancel := context.WithCancelCause(s.Context())
		cancel(errors.New("the user pressed a key"))
		expired, cancelExpired := context.WithTimeout(s.Context(), -time.Second)
		defer cancelExpired()
		for _, ctx := range []context.Context{cancelled, expired} {
			spec := s.resolve(shell.Request{Command: "touch marker"})
			r := s.runSpec(ctx, spec)
			s.wantAborted(r)
			if r.ExitCode != nil || r.Signal != nil || r.TimeoutMs != spec.Timeout.Milliseconds() {
				s.Errorf("%s, timeoutMs %d; nothing was to be run", ending(r.ExitCode, r.Signal), r.TimeoutMs)
			}
			if s.exists(filepath.Join(spec.Workdir, "marker")) {
				s.Error("the command was run")
			}
		}
	}},
	{"a background process holds the command", func(s *suite) {
		var wg sync.WaitGroup
		prefixes := []string{""}
		if s.o.Ranges { // nobody else would end what leaves its session
			prefixes = append(prefixes, "setsid ")
		}
		for _, prefix := range prefixes {
			for status, code := range map[string]int{"echo hi": 0, "echo hi; exit 3": 3} {
				wg.Go(func() {
					sleep := sleeper()
					r, err := s.Run(s.Context(), s.resolve(shell.Request{Command: prefix + sleep + " & " + status}))
					if err != nil {
						s.Error(err)
						return
					}
					s.wantUnended(r)
					s.wantExit(r, code)
					s.wantText("stdout", r.Stdout.Text, "hi\n")
					if took := time.Duration(r.DurationMs) * time.Millisecond; took > patience {
						s.Errorf("took %v", took)
					}
					if r.Survivors == 0 && s.alive(sleep) {
						s.Errorf("%q goes on and is not reported", prefix+sleep)
					}
				})
			}
		}
		wg.Wait()
	}},
	{"output after the shell's exit is lost", func(s *suite) {
		var wg sync.WaitGroup
		for command, want := range map[string]string{
			"exec > >(sort -n | tail -n 1); seq 200000":                      "200000\n",
			"exec > >(tee log.txt) 2>&1; echo done":                          "done\n",
			"(while :; do echo tick; sleep 0.05; done) & sleep 0.3; echo fg": "fg\n",
		} {
			wg.Go(func() {
				r, err := s.Run(s.Context(), s.resolve(shell.Request{Command: command}))
				if err != nil {
					s.Error(err)
					return
				}
				s.wantExit(r, 0)
				if !strings.Contains(r.Stdout.Text, want) {
					s.Errorf("%s: stdout %q, want %q in it", command, abbreviated(r.Stdout.Text), want)
				}
			})
		}
		wg.Wait()
	}},
	{"survivors end with the caller's context", func(s *suite) {
		ctx, cancel := context.WithCancel(s.Context())
		sleep := sleeper()
		r := s.runSpec(ctx, s.resolve(shell.Request{Command: sleep + " >/dev/null 2>&1 &"}))
		cancel()
		s.wantUnended(r)
		s.runs(shell.Request{Command: "true"}) // time for a signal that must not come
		if r.Survivors > 0 && !s.alive(sleep) {
			s.Error("a survivor was ended by the context of a Run that had returned")
		}
	}},
}
