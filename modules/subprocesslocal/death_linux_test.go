package subprocesslocal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"dsh/internal/testkit"
	"dsh/modules/subprocess"
	"dsh/modules/subprocesslocal"
)

// A host that is to die is this program, started again for TestMortalHost alone, in a pid namespace in which there is
// nothing else: whatever is there afterwards is the host's.
const (
	mortalVariable = "TEST_MORTAL"       // what the host does: a name in lives
	rangeVariable  = "TEST_MORTAL_RANGE" // the kind of its ranges
	homeVariable   = "TEST_MORTAL_HOME"
)

// worlds are where each kind of range is the one to take.
var worlds = map[subprocess.RangeKind]testkit.World{
	subprocess.RangeGroup:  {Cgroups: testkit.CgroupsHidden},
	subprocess.RangeCgroup: {},
	subprocess.RangeScope:  {UserManager: true},
}

// everybody is root and an ordinary user.
var everybody = []int{0, 65534}

// inEachWorld runs f inside the world of each kind, as root and, where the kind depends on it, as the other users.
func inEachWorld(t *testing.T, users []int, f func(t *testing.T, kind subprocess.RangeKind)) {
	for kind, world := range worlds {
		for _, uid := range users {
			if uid != 0 && kind == subprocess.RangeGroup {
				continue
			}
			world := world // of this run, which is later than the loop
			world.UID = uid
			t.Run(fmt.Sprintf("%s as %d", kind, uid), func(t *testing.T) {
				t.Parallel()
				if testkit.In(t, world) {
					f(t, kind)
				}
			})
		}
	}
}

// children are the ways of a process to be hard to find or to end. Each has sleeps with a duration of its own.
var children = []struct{ name, script string }{
	{name: "plain", script: `exec sleep 4401`},
	{name: "background", script: `sleep 4402 & sleep 4402 & wait`},
	{name: "session of its own", script: `setsid sleep 4403`},
	{name: "double fork", script: `(setsid bash -c 'sleep 4404 & exec true' &)`},
	{name: "deaf", script: `trap "" TERM INT HUP QUIT; sleep 4405; sleep 4405`},
	{name: "stopped", script: `sleep 4406 & until read -r name </proc/$!/comm && [ "$name" = sleep ]; do :; done; kill -STOP $! $$`},
	{name: "traced", script: `exec strace -f -o /dev/null sleep 4407`},
	{name: "namespace", script: `exec bwrap --dev-bind / / --unshare-pid --proc /proc --new-session bash -c 'sleep 4408; :'`},
	{name: "emptied environment", script: `env -i "$(type -p setsid)" bash -c "exec sleep 4409" & exec true`},
	{name: "fork loop", script: `while :; do (setsid sleep 4410 &); sleep 0.02; done`},
	{name: "nohup", script: `nohup sleep 4411 >/dev/null 2>&1 & exec true`},
	{name: "no descriptors", script: `exec 0<&- 1>&- 2>&-; exec setsid sleep 4412`},
}

// unmarked is what a group cannot find when the host is gone: it has left its session, and has no cookie.
const unmarked = "sleep 4409"

func sleeper(i int) []string { return []string{"sleep", strconv.Itoa(4401 + i)} }

// lives are what a host does until it dies.
var lives = map[string]func(t *testing.T, rt subprocess.Runtime){
	"owns": func(t *testing.T, rt subprocess.Runtime) {
		own(t, rt)
		select {}
	},
	"panics": func(t *testing.T, rt subprocess.Runtime) {
		own(t, rt)
		go panic("as it should")
		select {}
	},
	"exits": func(t *testing.T, rt subprocess.Runtime) {
		own(t, rt)
		os.Exit(3)
	},
	"hides": func(t *testing.T, rt subprocess.Runtime) {
		s := collected(firstThreadGone())
		s.Dir = os.Getenv("DSH_HOME")
		<-spawn(t, rt, s).Done()
		fmt.Println("ready")
		select {}
	},
	"idles": func(t *testing.T, rt subprocess.Runtime) {
		fmt.Println("ready")
		select {}
	},
	"spawns": func(t *testing.T, rt subprocess.Runtime) {
		for i := range 4 {
			script := `sleep 4421 & (setsid sleep 4422 >/dev/null 2>&1 &); read -t 0.02 <> <(:)`
			if i%2 == 1 {
				script = `exec bwrap --dev-bind / / --unshare-pid --proc /proc bash -c '(setsid sleep 4423 &); sleep 0.02'`
			}
			go func() {
				for {
					s := collected([]string{"bash", "-c", script})
					s.Grace = 20 * time.Millisecond
					if p, err := rt.Spawn(context.Background(), s); err == nil {
						<-p.Done()
						p.Terminate()
					}
				}
			}()
		}
		fmt.Println("ready")
		select {}
	},
	"nests": func(t *testing.T, rt subprocess.Runtime) {
		s := collected([]string{os.Args[0], "-test.run", "^TestMortalHost$"})
		s.Env.Set = map[string]string{mortalVariable: "owns", rangeVariable: "auto", homeVariable: t.TempDir()}
		s.Stdout = subprocess.Output{Inherit: true}
		s.Stderr = subprocess.Output{Inherit: true}
		spawn(t, rt, s)
		select {}
	},
}

// own starts one of all children, and one whose output is longer than what is kept.
func own(t *testing.T, rt subprocess.Runtime) {
	for _, c := range children {
		spawn(t, rt, collected([]string{"bash", "-c", c.script}))
	}
	s := collected([]string{"bash", "-c", "seq 100000; exec sleep 4420"})
	s.Stdout.Collect.SpillMaxBytes = 1 << 20
	p := spawn(t, rt, s)
	missing := ""
	defer func() {
		if t.Failed() {
			t.Log("missing:", missing)
		}
	}()
	testkit.Eventually(t, 20*time.Second, "everything is there", func() bool {
		for i := range children {
			if len(testkit.Processes(sleeper(i)...)) == 0 {
				missing = children[i].name
				return false
			}
		}
		missing = "a file of the output"
		return p.Stdout().Collected().SpillPath != "" && p.Stdout().Collected().Total == 588895
	})
	fmt.Println("ready")
}

func TestMortalHost(t *testing.T) {
	life := lives[os.Getenv(mortalVariable)]
	if life == nil {
		return
	}
	t.Setenv("DSH_HOME", os.Getenv(homeVariable))
	config := subprocesslocal.DefaultConfig()
	config.Range = os.Getenv(rangeVariable)
	config.EnterScope = true
	res, err := subprocesslocal.New(subprocesslocal.Params{Config: config, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Runner.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	life(t, res.Runtime)
}

// mortal is a host that was started to die.
type mortal struct {
	*exec.Cmd
	kind   subprocess.RangeKind
	home   string
	before []int // the processes without it
	stderr bytes.Buffer
	state  *os.ProcessState // how it ended, once it is buried
}

// bear starts a host and waits until it says that it is ready.
func bear(t *testing.T, kind subprocess.RangeKind, life string) *mortal {
	t.Helper()
	m := &mortal{kind: kind, home: t.TempDir(), before: everyone()}
	m.Cmd = exec.Command(os.Args[0], "-test.run", "^TestMortalHost$")
	m.Env = append(os.Environ(), mortalVariable+"="+life, rangeVariable+"="+string(kind), homeVariable+"="+m.home, "TMPDIR="+t.TempDir())
	m.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	m.Stderr = &m.stderr
	out, err := m.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	var line [6]byte
	if _, err := out.Read(line[:]); err != nil || string(line[:]) != "ready\n" {
		m.Process.Kill()
		m.Wait()
		t.Fatalf("the host is not ready: %q, %v\n%s", line, err, &m.stderr)
	}
	return m
}

// bury waits for the host's end, and for that of all that it had, and returns how long the latter took. What a group does
// not find may be left, and is killed.
func (m *mortal) bury(t *testing.T) time.Duration {
	t.Helper()
	var err error
	if m.state, err = m.Process.Wait(); err != nil {
		t.Fatal(err)
	}
	died := time.Now()
	var left []int
	for {
		left = slices.DeleteFunc(everyone(), func(pid int) bool {
			return slices.Contains(m.before, pid) || m.kind == subprocess.RangeGroup && arguments(pid) == unmarked
		})
		if len(left) == 0 && len(trees(t)) == 0 || time.Since(died) > 10*time.Second {
			break
		}
		time.Sleep(time.Millisecond)
	}
	took := time.Since(died)
	for _, pid := range left {
		t.Errorf("left: %d %s", pid, arguments(pid))
	}
	for _, tree := range trees(t) {
		t.Errorf("left: %s", tree)
	}
	if took > time.Second {
		t.Errorf("it took %v", took)
	}
	for _, pid := range everyone() {
		if !slices.Contains(m.before, pid) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	_ = m.Wait() // for stderr; that the process was waited for is an error
	return took
}

// everyone returns the processes of this pid namespace, zombies excluded.
func everyone() []int {
	var pids []int
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if _, rest, ok := strings.Cut(string(stat), ") "); err == nil && ok && rest[0] != 'Z' && rest[0] != 'X' {
			pids = append(pids, pid)
		}
	}
	return pids
}

func arguments(pid int) string {
	argv, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.TrimSpace(strings.ReplaceAll(string(argv), "\x00", " "))
}

// trees returns the cgroups of hosts, and their scopes.
func trees(t *testing.T) []string {
	var found []string
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && strings.HasPrefix(e.Name(), "dsh-") {
			found = append(found, path)
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) {
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestFirstThreadEndedBeforeTheHost has a child that shows no environment but that of its second thread.
func TestFirstThreadEndedBeforeTheHost(t *testing.T) {
	testkit.NeedProgram(t, "python3")
	inEachWorld(t, []int{0}, func(t *testing.T, kind subprocess.RangeKind) {
		m := bear(t, kind, "hides")
		pid, err := os.ReadFile(filepath.Join(m.home, "pid"))
		if err != nil {
			t.Error(err)
		}
		if _, err := os.Stat("/proc/" + string(pid)); err != nil {
			t.Error(err)
		}
		m.Process.Kill()
		m.bury(t)
		// Whether its zombie is waited for is up to the first process of this pid namespace.
		if threads, _ := os.ReadDir("/proc/" + string(pid) + "/task"); len(threads) > 1 {
			t.Errorf("%d threads are left", len(threads))
		}
	})
}

func TestNothingSurvivesTheHost(t *testing.T) {
	testkit.NeedProgram(t, "strace")
	testkit.NeedProgram(t, "bwrap")
	inEachWorld(t, everybody, func(t *testing.T, kind subprocess.RangeKind) {
		for _, c := range []struct {
			name, life string
			die        func(m *mortal)
			status     string
		}{
			{"killed", "owns", func(m *mortal) { m.Process.Kill() }, "signal: killed"},
			{"process group killed", "owns", func(m *mortal) { syscall.Kill(-m.Process.Pid, syscall.SIGKILL) }, "signal: killed"},
			{"quit", "owns", func(m *mortal) { m.Process.Signal(syscall.SIGQUIT) }, "exit status 2"},
			{"panic", "panics", func(*mortal) {}, "exit status 2"},
			{"exit", "exits", func(*mortal) {}, "exit status 3"},
		} {
			if os.Getuid() != 0 && c.name != "killed" {
				continue // who the host is makes no difference to how it ends
			}
			t.Run(c.name, func(t *testing.T) {
				m := bear(t, kind, c.life)
				c.die(m)
				took := m.bury(t)
				t.Logf("%v from the host's end to nothing left", took)
				if got := m.state.String(); got != c.status {
					t.Errorf("the host ended with %q, want %q", got, c.status)
				}
				if got := m.stderr.String(); (c.status == "exit status 2") != strings.Contains(got, "goroutine ") {
					t.Errorf("the host ended with %s and wrote\n%s", c.status, got)
				}
				spilled, _ := filepath.Glob(filepath.Join(m.home, "run", "*", "spill", "*"))
				if len(spilled) != 1 {
					t.Errorf("spill files: %q", spilled)
				} else if info, err := os.Stat(spilled[0]); err != nil || info.Size() != 588895 {
					t.Errorf("%v, %v", info, err)
				}
			})
		}
	})
}

func TestKilledWhileSpawning(t *testing.T) {
	testkit.NeedProgram(t, "bwrap")
	inEachWorld(t, everybody, func(t *testing.T, kind subprocess.RangeKind) {
		worst := time.Duration(0)
		rounds := 7
		if os.Getuid() != 0 {
			rounds = 2
		}
		for range rounds {
			m := bear(t, kind, "spawns")
			time.Sleep(rand.N(80 * time.Millisecond)) // any moment
			m.Process.Kill()
			worst = max(worst, m.bury(t))
		}
		t.Logf("at worst %v from the host's end to nothing left", worst)
	})
}

// guards returns the guards among the children of a process.
func guards(host int) []int {
	var pids []int
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", host))
	for _, list := range lists {
		content, _ := os.ReadFile(list)
		for _, field := range strings.Fields(string(content)) {
			if pid, _ := strconv.Atoi(field); strings.Contains(arguments(pid), " dsh-guard ") {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func TestGuardIsReplaced(t *testing.T) {
	inEachWorld(t, []int{0}, func(t *testing.T, kind subprocess.RangeKind) {
		m := bear(t, kind, "owns")
		var first []int
		testkit.Eventually(t, 10*time.Second, "there is one guard", func() bool {
			first = guards(m.Process.Pid)
			return len(first) == 1
		})
		for range 3 {
			if err := syscall.Kill(first[0], syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			// The kernel's lists of children may lack one that is there while others come and go.
			var second []int
			testkit.Eventually(t, 10*time.Second, "there is another guard", func() bool {
				second = guards(m.Process.Pid)
				return len(second) == 1 && second[0] != first[0]
			})
			first = second
		}
		m.Process.Kill()
		m.bury(t)
	})
}

func TestNestedHostEndsWithItsParent(t *testing.T) {
	inEachWorld(t, []int{0}, func(t *testing.T, kind subprocess.RangeKind) {
		m := bear(t, kind, "nests")
		m.Process.Kill()
		m.bury(t)
	})
}

// TestSweep has hosts that die together with their guards.
func TestSweep(t *testing.T) {
	inEachWorld(t, everybody, func(t *testing.T, kind subprocess.RangeKind) {
		if kind == subprocess.RangeGroup {
			return // it leaves nothing by which it could be found
		}
		unguarded := func() *mortal {
			m := bear(t, kind, "owns")
			if err := m.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			testkit.Eventually(t, 10*time.Second, "the guard is found", func() bool {
				all := guards(m.Process.Pid)
				for _, pid := range all {
					syscall.Kill(pid, syscall.SIGKILL)
				}
				return len(all) > 0
			})
			return m
		}
		dead, alive := unguarded(), unguarded()
		dead.Process.Kill()
		dead.Wait()
		if left := len(trees(t)); left != 2 {
			t.Errorf("%d trees are left of two hosts", left)
		}

		first := bear(t, kind, "idles")
		testkit.Eventually(t, 20*time.Second, "the tree of the dead host is gone", func() bool { return len(trees(t)) == 2 })
		for i := range children {
			if got := len(testkit.Processes(sleeper(i)...)); got == 0 {
				t.Errorf("%s of a living host is gone", children[i].name)
			}
		}
		alive.Process.Kill()
		alive.Wait()

		second := bear(t, kind, "idles")
		testkit.Eventually(t, 20*time.Second, "the tree of the other is gone", func() bool { return len(trees(t)) == 2 })
		for _, m := range []*mortal{first, second} {
			m.Process.Kill()
			m.Wait()
		}
		testkit.Eventually(t, 20*time.Second, "all is gone", func() bool { return len(trees(t)) == 0 })
	})
}

// TestGuardIsNobodysBusiness has a guard beside a command that looks for it.
func TestGuardIsNobodysBusiness(t *testing.T) {
	rt, runner := newRuntime(t)
	if err := runner.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	stopped := sync.OnceValue(func() error { return runner.Stop(context.WithoutCancel(t.Context())) })
	defer stopped()
	p := spawn(t, rt, collected([]string{"true"}))
	if o, err := p.Outcome(); err != nil || o.ExitCode != 0 || p.Survivors() != 0 {
		t.Errorf("got %+v, %v with %d survivors", o, err, p.Survivors())
	}
	all := guards(os.Getpid())
	if len(all) == 0 {
		t.Fatal("there is no guard")
	}
	for _, pid := range all {
		proc := fmt.Sprintf("/proc/%d/", pid)
		fds, _ := filepath.Glob(proc + "fd/*")
		for i, fd := range fds {
			fds[i], _ = os.Readlink(fd)
		}
		if len(fds) != 3 || !strings.HasPrefix(fds[0], "pipe:") || fds[1] != "/dev/null" || fds[2] != "/dev/null" {
			t.Errorf("it has descriptors %q", fds)
		}
		environ, _ := os.ReadFile(proc + "environ")
		if strings.Count(string(environ), "\x00") != 1 || !strings.HasPrefix(string(environ), "PATH=") {
			t.Errorf("it has the environment %q", environ)
		}
		testkit.Eventually(t, 10*time.Second, "it ignores HUP, INT, QUIT and TERM", func() bool {
			status, _ := os.ReadFile(proc + "status")
			_, ignored, _ := strings.Cut(string(status), "\nSigIgn:\t")
			ignored, _, _ = strings.Cut(ignored, "\n")
			mask, _ := strconv.ParseUint(ignored, 16, 64)
			return mask&0x4007 == 0x4007
		})
	}
	if err := stopped(); err != nil {
		t.Error(err)
	}
	if left := guards(os.Getpid()); len(left) >= len(all) {
		t.Errorf("guards %v before the stop, %v after", all, left)
	}
}

// TestNoShellForTheGuard is about a machine without one: commands run all the same, and one warning says what is missing.
func TestNoShellForTheGuard(t *testing.T) {
	if !in(t, testkit.World{}) {
		return
	}
	shell, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount(os.DevNull, shell, "", syscall.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []subprocess.RangeKind{subprocess.RangeCgroup, subprocess.RangeGroup} {
		rt, runner, warnings, err := startLogged(t, pinned(kind))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			works(t, rt)
		}
		if err := runner.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if got := warnings(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "no guard: if this process is killed, its commands may go on") {
			t.Errorf("%s: the warnings are %q", kind, got)
		}
	}
}
