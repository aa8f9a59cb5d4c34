package subprocesslocal_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dsh/internal/testkit"
	"dsh/modules/subprocess"
)

// commandCgroups returns the cgroups of commands that are there.
func commandCgroups(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"/sys/fs/cgroup/dsh-*/cmds/cmd-*", "/sys/fs/cgroup/*/dsh-*/cmds/cmd-*", "/sys/fs/cgroup/*/*/dsh-*/cmds/cmd-*"} {
		dirs, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, dirs...)
	}
	return found
}

func quiesce(t *testing.T, p subprocess.Process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := p.Quiesce(ctx); err != nil {
		t.Error(err)
	}
}

// TestCommandsOwnCgroups has commands that do with their cgroup what root may do.
func TestCommandsOwnCgroups(t *testing.T) {
	if !testkit.In(t, testkit.World{}) {
		return
	}
	const here = `here=/sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup); `
	for _, c := range []struct{ name, command string }{
		{"cgroups below its own", here + `mkdir -p $here/a/b/c "$here/a/.hidden name"; sh -c "echo 0 >$here/a/b/c/cgroup.procs; exec sleep 4311" & sleep 4311 & echo; wait`},
		{"frozen", here + `sleep 4311 & sleep 4311 & mkdir $here/a; echo $! >$here/a/cgroup.procs; echo 1 >$here/a/cgroup.freeze; echo; wait`},
		{"threaded", here + `mkdir $here/a; sleep 4311 & sleep 4311 & echo threaded >$here/a/cgroup.type; echo; wait`},
		{"out of its cgroup", `sh -c "echo 0 >/sys/fs/cgroup/cgroup.procs; exec sleep 4311" & sleep 4311 & echo; wait`},
	} {
		t.Run(c.name, func(t *testing.T) {
			rt, runner, _, err := startLogged(t, pinned(subprocess.RangeCgroup))
			if err != nil {
				t.Fatal(err)
			}
			s := collected([]string{"bash", "-c", c.command})
			s.Grace = 500 * time.Millisecond
			p := spawn(t, rt, s)
			running := func() int { return len(testkit.Processes("sleep", "4311")) }
			testkit.Eventually(t, 20*time.Second, "the command runs", func() bool { return running() == 2 && p.Stdout().Collected().Total > 0 })
			p.Terminate()
			quiesce(t, p)
			if left := running(); left > 0 && c.name != "out of its cgroup" {
				t.Errorf("%d are left of an empty range", left)
			}
			if err := runner.Stop(t.Context()); err != nil {
				t.Error(err)
			}
			if left := running(); left > 0 {
				t.Errorf("%d are left", left)
			}
			if trees, _ := filepath.Glob("/sys/fs/cgroup/dsh-*"); len(trees) > 0 {
				t.Errorf("the cgroups %v are left", trees)
			}
		})
	}
}

// TestManyLiveCommands stops hosts that have many commands at once: in two seconds nothing is left of them.
func TestManyLiveCommands(t *testing.T) {
	for name, c := range map[string]struct {
		kind  subprocess.RangeKind
		world testkit.World
		n     int
	}{
		"cgroup": {subprocess.RangeCgroup, testkit.World{}, 1000},
		"scope":  {subprocess.RangeScope, testkit.World{UserManager: true, UID: 65534}, 1000},
		"group":  {subprocess.RangeGroup, testkit.World{}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			if !testkit.In(t, c.world) {
				return
			}
			// The machine may be busy with others at one time or another.
			took := stopMany(t, c.kind, c.n)
			for range 2 {
				if took < 2*time.Second {
					return
				}
				took = min(took, stopMany(t, c.kind, c.n))
			}
			if took >= 2*time.Second {
				t.Errorf("stopping took %v", took)
			}
		})
	}
}

// stopMany has n live commands stopped, checks that nothing is left of them, and returns how long the stop took.
func stopMany(t *testing.T, kind subprocess.RangeKind, n int) time.Duration {
	rt, runner, _, err := startLogged(t, pinned(kind))
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	var all []subprocess.Process
	for range n {
		all = append(all, spawn(t, rt, collected([]string{"sleep", "4313"})))
	}
	spawned := time.Since(begin)
	begin = time.Now()
	if err := runner.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	took := time.Since(begin)
	t.Logf("%d started in %v, stopped in %v", n, spawned, took)
	for _, p := range all {
		quiesce(t, p)
	}
	if left := testkit.Processes("sleep", "4313"); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	if left := commandCgroups(t); len(left) > 0 {
		t.Errorf("%d cgroups are left", len(left))
	}
	return took
}

const noInotifyVariable = "TEST_NO_INOTIFY"

// TestNoInotifyInstance is about a user who may have no more of them.
func TestNoInotifyInstance(t *testing.T) {
	if !testkit.In(t, testkit.World{}) {
		return
	}
	if os.Getenv(noInotifyVariable) == "" {
		cmd := exec.Command("unshare", "--user", "--map-root-user", "sh", "-c", `echo 0 >/proc/sys/user/max_inotify_instances && exec "$@"`, "sh",
			os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), noInotifyVariable+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	rt, _, _, err := startLogged(t, pinned(subprocess.RangeCgroup))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		p := spawn(t, rt, collected([]string{"bash", "-c", fmt.Sprintf("setsid sleep 0.%03d >/dev/null 2>&1 & echo hi", 60+10*i)}))
		<-p.Done()
		quiesce(t, p)
	}
	works(t, rt)
}
