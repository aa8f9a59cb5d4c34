package sandboxlocal_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"dsh/modules/sandbox"
	"dsh/modules/sandboxlocal"
)

func TestTheKernelIsOutOfReach(t *testing.T) {
	t.Parallel()
	attacks := []struct{ name, command string }{
		{"remounting the root", `mount -o remount,rw,bind /`},
		{"remounting the root recursively", `mount -o remount,rw /`},
		{"unmounting", `umount /proc`},
		{"mounting a tmpfs", `mount -t tmpfs none /mnt`},
		{"core_pattern, opened alone", `exec 3>>/proc/sys/kernel/core_pattern`},
		{"modprobe, opened alone", `exec 3>>/proc/sys/kernel/modprobe`},
		{"sysrq, opened alone", `exec 3>>/proc/sysrq-trigger`},
		{"the kernel's log", `exec 3>>/dev/kmsg`},
		{"a cgroup", `mkdir /sys/fs/cgroup/dsh-test-esc`},
		{"a device node", `mknod node b 7 0`},
		{"a device node for everybody", `mknod node c 1 5`},
		{"the host name", `hostname dsh-test-esc`},
		{"another root", `chroot / true`},
		{"the clock", `date -s 2001-01-01`},
		{"a nested mount namespace", `unshare -m true`},
		{"tracing the host", `python3 -c 'import ctypes; r=ctypes.CDLL(None).ptrace(0x4206, HOST, 0, 0); exit(0 if r == 0 else 1)'`},
		{"the memory of the host", `exec 3<>/proc/HOST/mem`},
		{"the descriptors of the host", `readlink /proc/HOST/fd/0 | grep .`},
		{"the environment of the host", `tr '\0' '\n' < /proc/HOST/environ | grep PATH`},
	}
	eachBackend(t, func(t *testing.T, w *world, backend string) {
		for _, a := range attacks {
			if !root() && a.name == "a nested mount namespace" {
				continue // refused to an ordinary user everywhere
			}
			command := strings.NewReplacer("HOST", itoa(os.Getpid()), "python3", python()).Replace(a.command)
			for _, mode := range []sandbox.Mode{sandbox.ReadOnly, sandbox.WorkspaceWrite} {
				if o := w.with(mode).run(t, command); o.code == 0 {
					t.Errorf("%s, %s: exit 0; stdout %q, stderr %q", a.name, mode, o.stdout, o.stderr)
				}
			}
		}
		if name, err := os.Hostname(); err != nil || name == "dsh-test-esc" {
			t.Errorf("the host is called %q, %v", name, err)
		}
	})
}

func TestSecretsOfTheHostAreNotSeen(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, w *world, backend string) {
		const canary = "CANARY_API_KEY"
		environment.Lock()
		os.Setenv(canary, "canary-value")
		defer environment.Unlock()
		defer os.Unsetenv(canary)
		// The host's own start environment, which setenv does not change, is another test's.
		o := w.run(t, `{ env; tr '\0' '\n' < /proc/1/environ; tr '\0' '\n' < /proc/$PPID/environ; cat /proc/1/cmdline; `+
			`cat /proc/$PPID/cmdline; } 2>/dev/null | grep -c 'canary[-]value'`)
		if o.stdout != "0\n" {
			t.Errorf("seen %q times; stderr %q", o.stdout, o.stderr)
		}
	})
}

// own marks descriptors that the test itself was started with, as the host does for all of its children.
func own(t *testing.T) {
	t.Helper()
	must(t, unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC))
}

func TestACommandSeesItselfAsIfItWereAlone(t *testing.T) {
	t.Parallel()
	own(t)
	eachBackend(t, func(t *testing.T, w *world, backend string) {
		o := w.run(t, `tr '\0' ' ' < /proc/$$/cmdline`)
		for _, sign := range []string{"=", "setenv", "json-status"} {
			if strings.Contains(o.stdout, sign) {
				t.Errorf("the command line is %q", o.stdout)
			}
		}
		o = w.run(t, `ls /proc/self/fd | tr '\n' ' '; ls -l /proc/$PPID/fd 2>/dev/null | grep -c 'pipe\|socket'`)
		if fds := strings.Fields(o.stdout); len(fds) < 4 || strings.Join(fds[:4], " ") != "0 1 2 3" || len(fds) > 5 {
			t.Errorf("open descriptors: %q (3 is the directory that ls reads)", o.stdout)
		}
	})
}

func TestDescriptorsOfTheHostAreNotInherited(t *testing.T) {
	t.Parallel()
	own(t)
	eachBackend(t, func(t *testing.T, w *world, backend string) {
		f, err := os.Create(filepath.Join(w.outside, "handed"))
		must(t, err)
		defer f.Close()
		s := w.spec(`echo given >&3; ls /proc/self/fd | tr '\n' ' '`)
		s.ExtraFiles = append(s.ExtraFiles, f) // the caller's own keep their numbers
		if o := w.runSpec(t, s); o.stdout != "0 1 2 3 4 " {
			t.Errorf("open descriptors: %q, stderr %q", o.stdout, o.stderr)
		}
		if got := read(t, filepath.Join(w.outside, "handed")); got != "given\n" {
			t.Errorf("through the caller's descriptor came %q", got)
		}
	})
}

func TestProcessesOfTheHostAreHiddenOrSafe(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, w *world, backend string) {
		o := w.run(t, "kill -0 "+itoa(os.Getpid()))
		if o.code == 0 {
			t.Errorf("a command can signal the host; stderr %q", o.stderr)
		}
		visible := w.run(t, "test -e /proc/"+itoa(os.Getpid())+"/stat").code == 0
		if want := backend == sandboxlocal.BackendLandlock; visible != want {
			t.Errorf("the host's processes are visible: %v, want %v", visible, want)
		}
	})
}

func TestFilesOfAnotherUserInTheWorkspaceCanBeWritten(t *testing.T) {
	t.Parallel()
	if !root() {
		t.Skip("this test needs root")
	}
	eachBackend(t, func(t *testing.T, w *world, backend string) {
		must(t, os.WriteFile(filepath.Join(w.ws, "theirs"), nil, 0o600))
		for _, path := range []string{w.ws, filepath.Join(w.ws, "theirs")} {
			must(t, os.Chown(path, 1000, 1000))
		}
		must(t, os.Chmod(w.ws, 0o755))
		if o := w.run(t, `touch f && echo x > theirs && cat theirs`); o.code != 0 {
			t.Errorf("code %d, stderr %q, %+v", o.code, o.stderr, o.verdict)
		}
		if backend == sandboxlocal.BackendBwrap {
			if o := w.run(t, `chown 1000:1000 f && chmod 600 theirs`); o.code != 0 {
				t.Errorf("code %d, stderr %q, %+v", o.code, o.stderr, o.verdict)
			}
		}
	})
}
