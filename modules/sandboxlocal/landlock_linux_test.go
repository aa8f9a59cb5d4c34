package sandboxlocal_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"

	"dsh/internal/testkit"
	"dsh/modules/sandbox"
	"dsh/modules/sandboxlocal"
)

// TestWhatLandlockLeavesOpenIsOpen keeps the list of what is not enforced honest: each of it can be done, and what the
// kernel's version adds cannot.
func TestWhatLandlockLeavesOpenIsOpen(t *testing.T) {
	t.Parallel()
	w := pinned(t, sandboxlocal.BackendLandlock)
	abi, err := ll.LandlockGetABIVersion()
	must(t, err)
	server := filepath.Join(w.outside, "server.sock")
	listen(t, "unix", server)
	abstract := "@dsh-landlock-" + filepath.Base(filepath.Dir(w.ws))
	listen(t, "unix", abstract)
	sleeper := exec.Command("sleep", "4127")
	must(t, sleeper.Start())
	t.Cleanup(func() {
		_ = sleeper.Process.Kill()
		_ = sleeper.Wait()
	})
	file := filepath.Join(w.outside, "secret")
	for _, c := range []struct {
		name, command string
		open          bool
		listed        string
	}{
		{"mode", `chmod 640 ` + quote(file), true, "the mode, owner, times"},
		{"times", `touch -d 2001-01-01 ` + quote(file), true, "the mode, owner, times"},
		{"path sockets", connect(server), abi < 9, "sockets in the file system"},
		{"abstract sockets", connect(abstract), abi < 6, "abstract sockets of other programs"},
		{"signals", `kill -0 ` + itoa(sleeper.Process.Pid), abi < 6, "abstract sockets of other programs, and signals"},
		{"the host's /tmp", `ls /tmp | grep .`, true, "the host's /tmp and processes are visible"},
		{"the host's processes", `grep -q sleep /proc/` + itoa(sleeper.Process.Pid) + `/cmdline`, true, "the host's /tmp and processes are visible"},
	} {
		o := w.run(t, c.command)
		if got := o.code == 0; got != c.open {
			t.Errorf("%s: open %v, want %v; stderr %q", c.name, got, c.open, o.stderr)
		}
		listed := slices.ContainsFunc(o.confined.NotEnforced, func(s string) bool { return strings.HasPrefix(s, c.listed) || strings.Contains(s, c.listed) })
		if listed != c.open {
			t.Errorf("%s: listed as not enforced %v, want %v: %q", c.name, listed, c.open, o.confined.NotEnforced)
		}
		if o.confined.Enforcement != sandbox.Partial {
			t.Errorf("enforcement %q", o.confined.Enforcement)
		}
	}
	if o := w.run(t, `chown 12345 `+quote(file)); o.code == 0 {
		t.Error("the owner of a file outside can be changed")
	}
	if o := w.run(t, `echo x > /tmp/dsh-test-esc`); o.code == 0 {
		os.Remove("/tmp/dsh-test-esc")
		t.Error("the host's /tmp can be written")
	}
}

func TestTheHostItselfIsNotRestricted(t *testing.T) {
	t.Parallel()
	w := pinned(t, sandboxlocal.BackendLandlock)
	for range 20 {
		if o := w.run(t, "true"); o.code != 0 {
			t.Fatalf("code %d, stderr %q", o.code, o.stderr)
		}
		done := make(chan error)
		for range 8 {
			go func() { done <- os.WriteFile(filepath.Join(w.outside, "free"), nil, 0o600) }()
		}
		for range 8 {
			must(t, <-done)
		}
	}
	// A thread that forks at this moment is, until it ends.
	testkit.Eventually(t, limit, "no thread is restricted", func() bool {
		tasks, _ := filepath.Glob("/proc/self/task/*/status")
		return len(tasks) > 0 && !slices.ContainsFunc(tasks, func(task string) bool {
			status, _ := os.ReadFile(task)
			return strings.Contains(string(status), "NoNewPrivs:\t1")
		})
	})
}
