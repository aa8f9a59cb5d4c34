package subprocesslocal_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"dsh/internal/testkit"
	"dsh/modules/subprocess"
)

// started returns a runtime with ranges of a kind, and what checks that nothing is left: of commands with these arguments
// at once, of cgroups but the one for the next command, and after a stop not that either.
func started(t *testing.T, kind subprocess.RangeKind) (rt subprocess.Runtime, noneLeft func(argv ...string)) {
	t.Helper()
	rt, runner, _, err := startLogged(t, pinned(kind))
	if err != nil {
		t.Fatal(err)
	}
	return rt, func(argv ...string) {
		t.Helper()
		if left := testkit.Processes(argv...); len(left) > 0 {
			t.Errorf("%v are left", left)
		}
		testkit.Eventually(t, 20*time.Second, "no ended command's cgroup is left", func() bool { return len(commandCgroups(t)) <= 1 })
		if err := runner.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if left := commandCgroups(t); len(left) > 0 {
			t.Errorf("the cgroups %q are left after the stop", left)
		}
	}
}

// TestEveryMoment ends bubblewrap at random moments of its start, where signals are lost or end the wrong process.
func TestEveryMoment(t *testing.T) {
	testkit.NeedProgram(t, "bwrap")
	inEachWorld(t, everybody, func(t *testing.T, kind subprocess.RangeKind) {
		rt, noneLeft := started(t, kind)
		for range 150 {
			s := collected([]string{"bwrap", "--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "--new-session", "sleep", "4312"})
			s.Wrapper = true
			p := spawn(t, rt, s)
			time.Sleep(rand.N(10 * time.Millisecond)) // the moment
			begin := time.Now()
			p.Terminate()
			quiesce(t, p)
			if took := time.Since(begin); took > s.Grace {
				t.Errorf("took %v: KILL was needed", took)
			}
		}
		noneLeft("sleep", "4312")
	})
}

// TestNothingAccumulates has orphans that end a little after their command.
func TestNothingAccumulates(t *testing.T) {
	inEachWorld(t, everybody, func(t *testing.T, kind subprocess.RangeKind) {
		rt, noneLeft := started(t, kind)
		for range 100 {
			p := spawn(t, rt, collected([]string{"bash", "-c", "sleep 0.01 >/dev/null 2>&1 & echo hi"}))
			<-p.Done()
			quiesce(t, p)
		}
		noneLeft("sleep", "0.01")
	})
}

// TestASignalToTheWrapper has somebody interrupt a sandbox's outer process, whose children do not hear of it.
func TestASignalToTheWrapper(t *testing.T) {
	testkit.NeedProgram(t, "bwrap")
	inEachWorld(t, everybody, func(t *testing.T, kind subprocess.RangeKind) {
		rt, noneLeft := started(t, kind)
		s := collected([]string{"bash", "-c", "echo $$ >pid; exec bwrap --new-session --dev-bind / / sleep 4126"})
		s.Dir, s.Wrapper = t.TempDir(), true
		p := spawn(t, rt, s)
		testkit.Eventually(t, 20*time.Second, "the command runs", func() bool { return len(testkit.Processes("sleep", "4126")) == 1 })
		text, err := os.ReadFile(filepath.Join(s.Dir, "pid"))
		if err != nil {
			t.Fatal(err)
		}
		var pid int
		if _, err := fmt.Sscan(string(text), &pid); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		<-p.Done()
		p.Terminate()
		quiesce(t, p)
		noneLeft("sleep", "4126")
	})
}

// TestNoZombies has orphans whose end nobody but the host can be told, and statuses that must not be taken with theirs.
func TestNoZombies(t *testing.T) {
	inEachWorld(t, everybody, func(t *testing.T, kind subprocess.RangeKind) {
		rt, _ := started(t, kind)
		for i := range 20 {
			p := spawn(t, rt, collected([]string{"bash", "-c", fmt.Sprintf("(sleep 0.1 >/dev/null 2>&1 &); exit %d", i)}))
			if o, err := p.Outcome(); err != nil || o.ExitCode != i {
				t.Errorf("got %+v, %v, want %d", o, err, i)
			}
		}
		testkit.Eventually(t, 2*time.Second, "there are no zombies", func() bool { return len(zombies(t)) == 0 })
	})
}

// zombies returns what the dead of this pid namespace were called.
func zombies(t *testing.T) (names []string) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // gone meanwhile
		}
		name, rest, _ := strings.Cut(string(text), ") ")
		if strings.HasPrefix(rest, "Z") {
			names = append(names, name)
		}
	}
	return names
}

// firstThreadEnds is a program that goes on in its second thread when the first has ended, and ignores TERM. It writes its
// pid to a file, and takes the number of exit(2) for an argument.
const firstThreadEnds = `
import ctypes, os, signal, sys, threading, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
threading.Thread(target=time.sleep, args=(4328,)).start()
with open("pid.new", "w") as f:
    f.write(str(os.getpid()))
os.rename("pid.new", "pid")
ctypes.CDLL(None).syscall(int(sys.argv[1]), 0)
`

// firstThreadGone is a command that leaves that program running, in a session of its own. The pid is in the file pid.
func firstThreadGone() []string {
	return []string{
		"bash", "-c", `
		setsid python3 -c "$0" $1 >/dev/null 2>&1 &
		until [ -e pid ] && [[ $(<"/proc/$(<pid)/stat") == *") Z "* ]]; do sleep 0.01; done`,
		firstThreadEnds, fmt.Sprint(syscall.SYS_EXIT),
	}
}

// TestFirstThreadEnds has an orphan of which /proc says that it is a zombie, and shows neither arguments nor environment.
func TestFirstThreadEnds(t *testing.T) {
	testkit.NeedProgram(t, "python3")
	inEachWorld(t, everybody, func(t *testing.T, kind subprocess.RangeKind) {
		rt, noneLeft := started(t, kind)
		s := collected(firstThreadGone())
		s.Dir, s.Grace = t.TempDir(), 100*time.Millisecond
		p := spawn(t, rt, s)
		if o, err := p.Outcome(); err != nil || o.ExitCode != 0 {
			t.Errorf("got %+v, %v", o, err)
		}
		if got := p.Survivors(); got != 1 {
			t.Errorf("got %d survivors", got)
		}
		pid, err := os.ReadFile(filepath.Join(s.Dir, "pid"))
		if err != nil {
			t.Fatal(err)
		}
		p.Terminate()
		quiesce(t, p)
		if _, err := os.Stat("/proc/" + string(pid)); err == nil {
			t.Errorf("%s is left", pid)
		}
		noneLeft()
	})
}
