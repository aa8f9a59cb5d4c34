//go:build unix

package subprocesstest

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"dsh/internal/testkit"
	"dsh/modules/subprocess"
)

// escapes are commands that start a process which leaves their process group, and print its id.
var escapes = map[string]string{
	"setsid":      `setsid sleep 4103 & echo $!`,
	"setsid -f":   `setsid -f bash -c 'echo $$; exec sleep 4120'`,
	"double fork": `( (setsid bash -c 'echo $$; exec sleep 4120' &) & ) ; sleep 0.1`,
	"background":  `sleep 4101 & echo $!`,
	"nohup":       `nohup sleep 4200 >/dev/null 2>&1 & echo $!`,
	"own subtree": `setsid bash -c '(sleep 4120; true) & echo $!; wait' & sleep 0.1`,
	"stopped":     `setsid bash -c 'echo $$; kill -STOP $$; sleep 4120' & sleep 0.1`,
}

func (s suite) ranges(t *testing.T) {
	t.Parallel()
	for name, command := range escapes {
		t.Run(name+" settles, is counted and ends at stop", func(t *testing.T) {
			t.Parallel()
			rt, stop := s.startStoppable(t)
			p := spawn(t, rt, bash(t, "exec 3>&1; "+command+"; echo end"))
			pid, _ := strconv.Atoi(await(t, p, 2)[0])
			if pid == 0 { // it wrote after the leader
				pid, _ = strconv.Atoi(await(t, p, 2)[1])
			}
			begin := time.Now()
			settle(t, p)
			if took := time.Since(begin); took > 2*time.Second {
				t.Errorf("settled only after %v, which is for the survivor", took)
			}
			if gone(pid) {
				t.Fatalf("process %d ended by itself", pid)
			}
			if n := p.Survivors(); n < 1 {
				t.Errorf("got %d survivors", n)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if p.Quiesce(ctx) == nil {
				t.Error("quiescent with a process left")
			}
			if err := stop(); err != nil {
				t.Errorf("stop: %v", err)
			}
			if !gone(pid) {
				t.Errorf("process %d outlived the runtime", pid)
			}
		})
		t.Run(name+" ends at termination", func(t *testing.T) {
			t.Parallel()
			rt := s.start(t)
			p := spawn(t, rt, bash(t, command+"; sleep 4121"))
			pid := awaitPid(t, p)
			p.Terminate()
			settle(t, p)
			quiesce(t, p)
			if !gone(pid) {
				t.Errorf("process %d is left of an empty range", pid)
			}
		})
	}
	t.Run("a ticking survivor does not hold settling up", func(t *testing.T) {
		t.Parallel()
		rt := s.start(t)
		spec := bash(t, "(while :; do echo tick; sleep 0.05; done) & sleep 0.3; echo fg-done")
		spec.Grace = patience
		p := spawn(t, rt, spec)
		begin := time.Now()
		settle(t, p)
		if took := time.Since(begin); took > patience/2 {
			t.Errorf("took %v", took)
		}
		if got := string(p.Stdout().Collected().Tail); !strings.Contains(got, "fg-done\n") {
			t.Errorf("got %q", got)
		}
		p.Terminate()
	})
	t.Run("a slow filter is waited for", func(t *testing.T) {
		t.Parallel()
		rt := s.start(t)
		spec := bash(t, "exec > >(sort -n | tail -1); seq 1000000")
		spec.Grace = patience
		if got := run(t, rt, spec); got != "1000000\n" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("what a survivor writes after settling does not end it", func(t *testing.T) {
		t.Parallel()
		rt := s.start(t)
		spec := bash(t, `(while [ ! -e go ]; do sleep 0.02; done; echo late; echo late; touch written; sleep 4101) & echo hi`)
		p := spawn(t, rt, spec)
		settle(t, p)
		run(t, rt, subprocess.Spec{
			Argv: []string{"touch", "go"}, Dir: spec.Dir, Grace: time.Second, Stdout: collected(), Stderr: collected(),
		})
		testkit.Eventually(t, patience, "the survivor writes on", func() bool { return exists(filepath.Join(spec.Dir, "written")) })
		if got := p.Stdout().Collected(); string(got.Tail) != "hi\n" || got.Total != 3 {
			t.Errorf("the settled output has become %q", got.Tail)
		}
		p.Terminate()
		quiesce(t, p)
	})
	t.Run("a loop that starts sessions", func(t *testing.T) {
		t.Parallel()
		rt := s.start(t)
		spec := bash(t, `for i in $(seq 1 400); do (setsid sleep 4122 & echo $! ); sleep 0.01; done`)
		spec.Grace = time.Second
		p := spawn(t, rt, spec)
		await(t, p, 20)
		p.Terminate()
		settle(t, p)
		quiesce(t, p)
		for line := range strings.Lines(string(p.Stdout().Collected().Tail)) {
			if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && !gone(pid) {
				t.Errorf("process %d is left", pid)
			}
		}
	})
	t.Run("a loop that ignores TERM", func(t *testing.T) {
		t.Parallel()
		rt := s.start(t)
		spec := bash(t, `trap "" TERM; echo $$; while :; do (setsid sleep 0.2 &); sleep 0.01; done`)
		spec.Grace = 200 * time.Millisecond
		p := spawn(t, rt, spec)
		pid := awaitPid(t, p)
		p.Terminate()
		if o := settle(t, p); o.Signal != "SIGKILL" {
			t.Errorf("got %+v", o)
		}
		quiesce(t, p)
		awaitGone(t, pid)
	})
	t.Run("a wrapper is spared", func(t *testing.T) {
		t.Parallel()
		rt := s.start(t)
		spec := bash(t, `trap "echo hit" TERM; bash -c 'trap "exit 9" TERM; echo $$; sleep 4152 & wait'`)
		spec.Wrapper = true
		p := spawn(t, rt, spec)
		awaitPid(t, p)
		p.Terminate()
		if o := settle(t, p); o.ExitCode != 9 {
			t.Errorf("got %+v, want the status that the wrapper passes on", o)
		}
		if got := string(p.Stdout().Collected().Tail); strings.Contains(got, "hit") {
			t.Error("the wrapper had TERM")
		}
	})
	t.Run("dead orphans are waited for", func(t *testing.T) {
		t.Parallel()
		rt := s.start(t)
		p := spawn(t, rt, bash(t, `for i in $(seq 1 20); do (setsid sleep 0.0$i & echo $!); done >pids; cat pids; sleep 0.3; ps -o stat= -p "$(paste -sd, pids)" | grep -c '^Z'; true`))
		settle(t, p)
		lines := strings.Fields(string(p.Stdout().Collected().Tail))
		if len(lines) != 21 || lines[20] != "0" {
			t.Errorf("got %q, want 20 process ids and then none that is dead", lines)
		}
		quiesce(t, p)
	})
}
