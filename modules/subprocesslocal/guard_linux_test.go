package subprocesslocal

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dsh/internal/testkit"
)

// begin starts a program that would run on, and returns what is closed when it has ended.
func begin(t *testing.T, attr *syscall.SysProcAttr, env ...string) <-chan struct{} {
	t.Helper()
	cmd := exec.Command("sleep", "4431")
	cmd.Env, cmd.SysProcAttr = env, attr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	return ended
}

// runGuard runs a guard's program whose host is gone. Its status means nothing.
func runGuard(t *testing.T, path string, argv []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, guardShell, argv[1:]...)
	cmd.Env = []string{"PATH=" + path}
	out, _ := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Errorf("it does not come to an end\n%s", out)
	}
}

func ended(t *testing.T, what string, process <-chan struct{}) {
	t.Helper()
	select {
	case <-process:
	case <-time.After(10 * time.Second):
		t.Error(what + " goes on")
	}
}

// TestGuardFindsWhatIsMarked has processes that are of the host, and some that only look so.
func TestGuardFindsWhatIsMarked(t *testing.T) {
	for name, path := range map[string]string{"with grep": "/usr/bin:/bin", "without any program": "/nonexistent"} {
		t.Run(name, func(t *testing.T) {
			id, other := randomHex(8), randomHex(8)
			alone := func() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
			mine := map[string]<-chan struct{}{
				"a command":             begin(t, alone(), "A=1\n2", cookieName+"="+id+":"+other),
				"a command of a nested": begin(t, alone(), cookieName+"="+id+":"+other+":"+other, "Z=1"),
				"a command in a range":  begin(t, alone(), cookieName+"="+other+":"+id+":"+other),
			}
			others := map[string]<-chan struct{}{
				"another host's command": begin(t, alone(), cookieName+"="+other+":"+randomHex(8)),
				"one that knows the id":  begin(t, alone(), "DIR=/run/"+id+"/tmp", "A="+id),
				"one without a cookie":   begin(t, alone()),
			}
			runGuard(t, path, newGuard(id, "", slog.New(slog.DiscardHandler)).argv)
			for what, process := range mine {
				ended(t, what, process)
			}
			for what, process := range others {
				select {
				case <-process:
					t.Errorf("%s was ended", what)
				default:
				}
			}
		})
	}
}

// TestGuardWithoutCgroupKill has a kernel before 5.14, as far as the guard can see: it may not write to the file.
func TestGuardWithoutCgroupKill(t *testing.T) {
	if !testkit.In(t, testkit.World{UID: 65534}) {
		return
	}
	root := filepath.Join("/sys/fs/cgroup", treePrefix+randomHex(8))
	tr := tree{root: root}
	if err := tr.create(); err != nil {
		t.Fatal(err)
	}
	var processes []<-chan struct{}
	for _, dir := range []string{"cmd-1/p", "cmd-2/p", "cmd-2/p/.hidden/with blank"} {
		dir = filepath.Join(tr.cmds(), dir)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		processes = append(processes, begin(t, &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: fd}))
		unix.Close(fd)
	}
	if err := os.Chmod(filepath.Join(tr.cmds(), "cgroup.kill"), 0); err != nil {
		t.Fatal(err)
	}
	runGuard(t, "/usr/bin:/bin", newGuard(randomHex(8), root, slog.New(slog.DiscardHandler)).argv)
	for _, process := range processes {
		ended(t, "a process in a cgroup", process)
	}
	if _, err := os.Stat(root); err == nil {
		t.Error("the tree is still there")
	}
}

// BenchmarkGuard is what a guard adds to a host's start and stop.
func BenchmarkGuard(b *testing.B) {
	var ready, ended []time.Duration
	for b.Loop() {
		g := newGuard(randomHex(8), "", slog.New(slog.DiscardHandler))
		began := time.Now()
		if err := g.start(); err != nil {
			b.Fatal(err)
		}
		g.ready()
		ready = append(ready, time.Since(began))
		time.Sleep(5 * time.Millisecond) // what a host lives at least
		began = time.Now()
		if err := g.end(); err != nil {
			b.Fatal(err)
		}
		ended = append(ended, time.Since(began))
	}
	slices.Sort(ready)
	slices.Sort(ended)
	b.ReportMetric(float64(ready[len(ready)/2].Microseconds()), "ready-µs")
	b.ReportMetric(float64(ended[len(ended)/2].Microseconds()), "end-µs")
}
