//go:build unix

package subprocesstest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"dsh/internal/testkit"
	"dsh/modules/subprocess"
)

func (s suite) outcome(t *testing.T) {
	t.Parallel()
	rt := s.start(t)
	for command, want := range map[string]subprocess.Outcome{
		"true":                           {},
		"exit 3":                         {ExitCode: 3},
		"exit 255":                       {ExitCode: 255},
		"kill -TERM $$":                  {ExitCode: -1, Signal: "SIGTERM"},
		"kill -KILL $$":                  {ExitCode: -1, Signal: "SIGKILL"},
		"kill -SEGV $$":                  {ExitCode: -1, Signal: "SIGSEGV"},
		"grep -q no_such_word /dev/null": {ExitCode: 1},
		"yes | head -n 1 >/dev/null; exit ${PIPESTATUS[0]}":     {ExitCode: 141},
		"exec 3>/dev/null; echo x >&3; exec 3>&-; true | false": {ExitCode: 1},
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			p := spawn(t, rt, bash(t, command))
			if got := settle(t, p); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			quiesce(t, p)
			if n := p.Survivors(); n != 0 {
				t.Errorf("got %d survivors of a command that started nothing", n)
			}
			p.Terminate() // of nothing
			if again, err := p.Outcome(); again != want || err != nil {
				t.Errorf("got %+v, %v at the second asking", again, err)
			}
		})
	}
	t.Run("in its directory", func(t *testing.T) {
		t.Parallel()
		spec := bash(t, "pwd -P")
		want, err := filepath.EvalSymlinks(spec.Dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := run(t, rt, spec); got != want+"\n" {
			t.Errorf("got %q, want %s", got, want)
		}
	})
	t.Run("many wait", func(t *testing.T) {
		t.Parallel()
		spec := bash(t, "read -r x; exit 7")
		spec.Stdin.Pipe = true
		p := spawn(t, rt, spec)
		var waiters sync.WaitGroup
		for range 8 {
			waiters.Go(func() {
				if o, err := p.Outcome(); o.ExitCode != 7 || err != nil {
					t.Errorf("got %+v, %v", o, err)
				}
			})
		}
		select {
		case <-p.Done():
			t.Error("settled while it runs")
		default:
		}
		p.Stdin().Close()
		waiters.Wait()
	})
}

// workers are commands that wait in ways of which only the first ends when its leader alone is signalled.
var workers = []string{
	"echo $$; exec sleep 4106",
	"sleep 4106 & echo $!; wait; true",
	"sleep 4106 & echo $!; wait",
	"(sleep 4106 & echo $!; wait)",
	"{ sleep 4106 & echo $!; wait; } | cat",
	"sleep 4106 & echo $!; kill -STOP $!; wait",
	"echo $$; kill -STOP $$; sleep 4106",
}

func (s suite) termination(t *testing.T) {
	t.Parallel()
	rt := s.start(t)
	for _, command := range workers {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			spec := bash(t, command)
			spec.Grace = patience
			p := spawn(t, rt, spec)
			pid := awaitPid(t, p)
			begin := time.Now()
			p.Terminate()
			p.Terminate()
			settle(t, p)
			quiesce(t, p)
			if took := time.Since(begin); took > patience/2 {
				t.Errorf("took %v: TERM did not reach everybody", took)
			}
			awaitGone(t, pid)
		})
	}
	t.Run("status of who handles it", func(t *testing.T) {
		t.Parallel()
		p := spawn(t, rt, bash(t, `trap "exit 5" TERM; sleep 4152 & echo $!; wait`))
		pid := awaitPid(t, p)
		p.Terminate()
		if o := settle(t, p); o.ExitCode != 5 {
			t.Errorf("got %+v, want exit 5", o)
		}
		awaitGone(t, pid)
	})
	t.Run("TERM-proof leader", func(t *testing.T) {
		t.Parallel()
		spec := bash(t, `trap "" TERM; echo $$; while :; do sleep 0.05; done`)
		spec.Grace = 300 * time.Millisecond
		p := spawn(t, rt, spec)
		pid := awaitPid(t, p)
		begin := time.Now()
		p.Terminate()
		if o := settle(t, p); o.Signal != "SIGKILL" {
			t.Errorf("got %+v, want SIGKILL", o)
		}
		if took := time.Since(begin); took < spec.Grace {
			t.Errorf("killed after %v, within its grace of %v", took, spec.Grace)
		}
		quiesce(t, p)
		awaitGone(t, pid)
	})
	t.Run("TERM-proof child of a dead leader", func(t *testing.T) {
		t.Parallel()
		spec := bash(t, `(trap "" TERM; echo $BASHPID; while :; do sleep 0.05; done) & wait`)
		spec.Grace = 300 * time.Millisecond
		p := spawn(t, rt, spec)
		pid := awaitPid(t, p)
		p.Terminate()
		if o := settle(t, p); o.Signal != "SIGTERM" {
			t.Errorf("got %+v, want SIGTERM", o)
		}
		quiesce(t, p)
		awaitGone(t, pid)
	})
	for name, first := range map[string]bool{"hurried": true, "hurried before": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := bash(t, `trap "" TERM; echo $$; while :; do sleep 0.05; done`)
			spec.Grace = subprocess.MaxGrace
			p := spawn(t, rt, spec)
			pid := awaitPid(t, p)
			if first {
				p.Terminate()
			}
			p.Hurry()
			p.Hurry()
			if !first {
				p.Terminate()
			}
			if o := settle(t, p); o.Signal != "SIGKILL" {
				t.Errorf("got %+v, want SIGKILL", o)
			}
			quiesce(t, p)
			awaitGone(t, pid)
		})
	}
	t.Run("hurried alone", func(t *testing.T) {
		t.Parallel()
		p := spawn(t, rt, bash(t, "sleep 0.5; exit 4"))
		p.Hurry()
		if o := settle(t, p); o.ExitCode != 4 {
			t.Errorf("got %+v, want exit 4: nobody asked it to end", o)
		}
	})
	t.Run("context ends", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		p := spawnIn(ctx, t, rt, bash(t, "sleep 4106 & echo $!; wait"))
		pid := awaitPid(t, p)
		cancel()
		if o := settle(t, p); o.Signal != "SIGTERM" {
			t.Errorf("got %+v, want SIGTERM", o)
		}
		quiesce(t, p)
		awaitGone(t, pid)
	})
	t.Run("context ends after the leader", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		p := spawnIn(ctx, t, rt, bash(t, "sleep 4106 >/dev/null 2>&1 & echo $!"))
		pid := awaitPid(t, p)
		settle(t, p)
		if gone(pid) {
			t.Fatal("the leader's end ended its child")
		}
		cancel()
		quiesce(t, p)
		awaitGone(t, pid)
	})
	t.Run("quiescence is waited for as long as the context lasts", func(t *testing.T) {
		t.Parallel()
		p := spawn(t, rt, bash(t, "sleep 4106 >/dev/null 2>&1 & echo $!"))
		settle(t, p)
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
		if err := p.Quiesce(ctx); !errors.Is(err, why) {
			t.Errorf("got %v with a process left, want the context's cause", err)
		}
		p.Terminate()
		quiesce(t, p)
		if err := p.Quiesce(ctx); err != nil {
			t.Errorf("got %v of an empty range", err)
		}
	})
}

func (s suite) stop(t *testing.T) {
	t.Parallel()
	t.Run("ends everything", func(t *testing.T) {
		t.Parallel()
		rt, stop := s.startStoppable(t)
		var processes []subprocess.Process
		var pids []int
		for _, command := range append(workers[:3:3], "sleep 4225 >/dev/null 2>&1 & echo $!") {
			processes = append(processes, spawn(t, rt, bash(t, command)))
			pids = append(pids, awaitPid(t, processes[len(processes)-1]))
		}
		if err := stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		for i, p := range processes {
			select {
			case <-p.Done():
			default:
				t.Errorf("command %d has not settled", i)
			}
			if !gone(pids[i]) {
				t.Errorf("a process of command %d is left", i)
			}
		}
		spec, unstarted := marked(t)
		if _, err := rt.Spawn(t.Context(), spec); !errors.Is(err, subprocess.ErrStopped) {
			t.Errorf("got %v, want ErrStopped", err)
		}
		unstarted()
		if got := string(processes[0].Stdout().Collected().Tail); got != strconv.Itoa(pids[0])+"\n" {
			t.Errorf("output cannot be read any more: got %q", got)
		}
	})
	t.Run("the last resort", func(t *testing.T) {
		t.Parallel()
		rt, runner := s.newRuntime(t)
		if runner.Start != nil {
			if err := runner.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		p := spawn(t, rt, bash(t, `trap "" TERM; echo $$; while :; do sleep 0.05; done`))
		pid := awaitPid(t, p)
		runner.Kill()
		runner.Kill()
		if o := settle(t, p); o.Signal != "SIGKILL" {
			t.Errorf("got %+v, want SIGKILL", o)
		}
		awaitGone(t, pid)
		if err := runner.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// accumulation looks at the whole process, and so is no parallel test.
func (s suite) accumulation(t *testing.T) {
	rt := s.start(t)
	spec := bash(t, "echo hi; echo E >&2")
	batch := func() {
		var group sync.WaitGroup
		for range 32 {
			group.Go(func() {
				for range 4 {
					p, err := rt.Spawn(t.Context(), spec)
					if err != nil {
						t.Error(err)
						return
					}
					if o, err := p.Outcome(); err != nil || o.ExitCode != 0 {
						t.Errorf("got %+v, %v", o, err)
					}
					quiesce(t, p)
				}
			})
		}
		group.Wait()
	}
	batch()
	files, goroutines := descriptors(t), runtime.NumGoroutine()
	batch()
	// Others, such as a finishing goroutine, may come in between: what accumulates is there for good.
	testkit.Eventually(t, patience, "descriptors and goroutines are as many as before", func() bool {
		return descriptors(t) <= files && runtime.NumGoroutine() <= goroutines
	})
}

func descriptors(t testing.TB) int {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
