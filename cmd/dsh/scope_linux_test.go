package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"dsh/internal/testkit"
)

// TestUnderAManager has the program where a systemd manager makes scopes: it moves into one, says so, and leaves nothing
// of what it started, however it ends.
func TestUnderAManager(t *testing.T) {
	for name, uid := range map[string]int{"root": 0, "ordinary user": 65534} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			if !testkit.In(t, testkit.World{UserManager: true, UID: uid}) {
				return
			}
			dir := t.TempDir()
			t.Chdir(dir)
			t.Setenv("DSH_HOME", filepath.Join(dir, "home"))
			program := filepath.Join(dir, "dsh") // by its name the test binary is the program
			if err := os.Symlink(os.Args[0], program); err != nil {
				t.Fatal(err)
			}
			out := run(t, program, "exec", "--json", "cat /proc/self/cgroup; setsid sleep 30401 >/dev/null 2>&1 &")
			for _, want := range []string{`"range":"scope"`, `.scope/cmds/cmd-`, `"survivors":1`} {
				if !strings.Contains(out, want) {
					t.Errorf("got %s, want %s in it", out, want)
				}
			}
			if out := run(t, program, "doctor"); !strings.Contains(out, "* scope") {
				t.Errorf("the doctor says\n%s", out)
			}
			run(t, program, "config", "check")
			run(t, program, "modules")

			endsWithAllItStarted(t, program, "30401", "scope")

			testkit.Eventually(t, 5*time.Second, "the manager has removed the scopes", func() bool {
				scopes, err := exec.Command("systemctl", "--user", "list-units", "--type=scope", "--all", "--no-legend", "--plain").Output()
				return err == nil && !strings.Contains(string(scopes), "dsh-")
			})
		})
	}
}

// TestItEndsWithAllItStarted has the program end in every way, with commands in each of the other kinds of range.
func TestItEndsWithAllItStarted(t *testing.T) {
	for kind, duration := range map[string]string{"cgroup": "30402", "group": "30403"} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			t.Setenv("DSH_HOME", filepath.Join(dir, "home"))
			program := filepath.Join(dir, "dsh")
			if err := os.Symlink(os.Args[0], program); err != nil {
				t.Fatal(err)
			}
			err := exec.CommandContext(t.Context(), program, "--set", "subprocess.range="+kind, "exec", "true").Run()
			testkit.Need(t, "a writable cgroup of version 2", err == nil || kind != "cgroup")
			endsWithAllItStarted(t, program, duration, kind)
		})
	}
}

// endsWithAllItStarted sends the program each signal that ends it, while its command sleeps for duration in two processes,
// and looks for what is left of them.
func endsWithAllItStarted(t *testing.T, program, duration, kind string) {
	t.Helper()
	pinned := []string{"--set", "subprocess.range=" + kind, "--set", "subprocess.enterScope=true"}
	gone := func(after string, within time.Duration) {
		t.Helper()
		testkit.Eventually(t, within, "nothing is left after "+after, func() bool { return len(testkit.Processes("sleep", duration)) == 0 })
	}
	for _, c := range []struct {
		signal syscall.Signal
		status int
	}{{syscall.SIGINT, 130}, {syscall.SIGTERM, 143}, {syscall.SIGHUP, 129}, {syscall.SIGKILL, -1}, {syscall.SIGQUIT, 2}} {
		cmd := starts(t, program, append(pinned, "exec", "echo >up; setsid sleep "+duration+" & sleep "+duration)...)
		if err := cmd.Process.Signal(c.signal); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != c.status {
			t.Errorf("after %v it ended with %d, want %d", c.signal, got, c.status)
		}
		left := 3 * time.Second // the guard may still be at it
		if c.status > 100 {
			left = 0 // the program has seen to it before it ended
		}
		gone(c.signal.String(), left)
	}

	// The second interrupt waits for nothing.
	cmd := starts(t, program, append(pinned, "--set", "bash-sandbox.graceMs=60000", "exec", `trap "" INT TERM; echo >up; while :; do sleep `+duration+`; done`)...)
	_ = cmd.Process.Signal(syscall.SIGINT)
	time.Sleep(300 * time.Millisecond)
	_ = cmd.Process.Signal(syscall.SIGINT)
	began := time.Now()
	_ = cmd.Wait()
	if took, got := time.Since(began), cmd.ProcessState.ExitCode(); took > 500*time.Millisecond || got != 130 {
		t.Errorf("the second interrupt took %v, and the status is %d", took, got)
	}
	gone("the second interrupt", 3*time.Second)
}

// run returns what the program writes, and fails the test if it fails.
func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		t.Errorf("dsh %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// starts starts the program and waits for the file up, which its command makes.
func starts(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	if err := os.RemoveAll("up"); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 20*time.Second, "the command runs", func() bool {
		info, err := os.Stat("up")
		return err == nil && info.Size() > 0
	})
	return cmd
}
