package sandboxlocal_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dsh/modules/sandbox"
	"dsh/modules/sandboxlocal"
)

// ways are ways to change what is outside. Each line has to fail; OUT is a directory outside that this user owns.
var ways = []struct{ name, command string }{
	{"a new file", `echo x > OUT/ESC`},
	{"an existing file", `echo x > OUT/secret`},
	{"appending", `echo x >> OUT/secret`},
	{"truncating", `truncate -s0 OUT/secret`},
	{"removing", `rm -f OUT/secret`},
	{"a directory", `mkdir OUT/ESC`},
	{"a symbolic link outside", `ln -s /etc OUT/ESC`},
	{"through a symbolic link", `ln -s OUT s && echo x > s/ESC`},
	{"through a link to a file", `ln -s OUT/secret s2 && echo x > s2`},
	{"a hard link in", `ln OUT/secret h && echo x > h`},
	{"moving out", `echo x > f && mv f OUT/ESC`},
	{"moving in", `mv OUT/secret got`},
	{"renaming without copying", `echo x > f; python3 -c 'import os; os.rename("f", "OUT/ESC")'`},
	{"linking without copying", `echo x > f; python3 -c 'import os; os.link("f", "OUT/ESC")'`},
	{"the root of the first process", `echo x > /proc/1/root/OUT/ESC`},
	{"the root of the parent", `echo x > /proc/$PPID/root/OUT/ESC`},
	{"the directory of the parent", `echo x > /proc/$PPID/cwd/../outside/ESC`},
	{"a dot-dot path", `echo x > ../outside/ESC`},
	{"a bind mount", `mkdir -p m && mount --bind OUT m && echo x > m/ESC`},
	{"an own user namespace", `unshare -rm bash -c 'mount -o remount,rw,bind / ; echo x > OUT/ESC'`},
	{"a file of the system", `echo x >> /etc/hostname`},
	{"a fifo", `mkfifo OUT/ESC`},
	{"a socket", `python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("OUT/ESC")'`},
	{"through an open descriptor", `exec 9< OUT && echo x > /proc/self/fd/9/ESC`},
}

func TestNoWayLeadsOut(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, w *world, backend string) {
		for _, mode := range []sandbox.Mode{sandbox.ReadOnly, sandbox.WorkspaceWrite} {
			w := w.with(mode)
			for _, way := range ways {
				command := strings.NewReplacer("OUT", w.outside, "python3", python()).Replace(way.command)
				o := w.run(t, command)
				if o.code == 0 {
					t.Errorf("%s, %s: exit 0; stdout %q, stderr %q", mode, way.name, o.stdout, o.stderr)
				}
				if o.verdict.RunnerFailed {
					t.Errorf("%s, %s: the runner failed: %s", mode, way.name, o.verdict.Reason)
				}
				absent(t, filepath.Join(w.outside, "ESC"))
				if got := read(t, filepath.Join(w.outside, "secret")); got != "outside\n" {
					t.Fatalf("%s, %s: what was outside is %q", mode, way.name, got)
				}
				if mode == sandbox.ReadOnly {
					if left := names(t, w.ws); len(left) > 0 {
						t.Fatalf("read-only, %s: the workspace holds %q", way.name, left)
					}
				}
				clear(t, w.ws)
			}
		}
	})
}

func TestTheWorkspaceIsOpenInOneModeAlone(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, w *world, backend string) {
		all := strings.ReplaceAll(`mkdir -p a/b c && echo x > a/f && mv a/f c/f && ln c/f a/g && ln -s ../c a/s && rm a/g && chmod 700 a && rmdir a/b && `+
			`python3 -c 'import os; os.mkdir("d"); os.rename("c/f", "d/f"); os.link("d/f", "c/g")' && echo done`, "python3", python())
		if o := w.run(t, all); o.code != 0 || o.stdout != "done\n" || o.verdict.Denied {
			t.Errorf("workspace-write: code %d, stdout %q, stderr %q, %+v", o.code, o.stdout, o.stderr, o.verdict)
		}
		clear(t, w.ws)
		write(t, filepath.Join(w.ws, "here"), "here\n")
		o := w.with(sandbox.ReadOnly).run(t, `cat here && touch there`)
		if o.code == 0 || o.stdout != "here\n" || !o.verdict.Denied {
			t.Errorf("read-only: code %d, stdout %q, stderr %q, %+v", o.code, o.stdout, o.stderr, o.verdict)
		}
		absent(t, filepath.Join(w.ws, "there"))
	})
}

func TestACommandThatWritesNothingLeavesNothing(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, w *world, backend string) {
		w.env = map[string]string{"TMPDIR": w.outside}
		for _, mode := range []sandbox.Mode{sandbox.ReadOnly, sandbox.WorkspaceWrite} {
			if o := w.with(mode).run(t, "true"); o.code != 0 {
				t.Errorf("%s: code %d, stderr %q", mode, o.code, o.stderr)
			}
			if left := names(t, w.ws); len(left) > 0 {
				t.Errorf("%s: the workspace holds %q", mode, left)
			}
		}
	})
}

func TestTemporaryFilesHaveAPlace(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, w *world, backend string) {
		w.env = map[string]string{"TMPDIR": w.outside} // as inherited from a host that has one somewhere
		for _, mode := range []sandbox.Mode{sandbox.ReadOnly, sandbox.WorkspaceWrite} {
			// A here-document over 64 KiB is a temporary file of the shell's.
			o := w.with(mode).run(t, "wc -c <<'END'\n"+strings.Repeat("x", 100_000)+"\nEND\nf=$(mktemp) && echo x > $f && cat $f && echo hi > /dev/null")
			if o.code != 0 || o.stdout != "100001\nx\n" {
				t.Errorf("%s: code %d, stdout %q, stderr %q", mode, o.code, o.stdout, o.stderr)
			}
		}
		if left := names(t, w.outside); len(left) != 1 {
			t.Errorf("the host's TMPDIR holds %q", left)
		}
	})
}

func TestTemporaryFilesLastForTheSession(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, w *world, backend string) {
		if o := w.run(t, `echo kept > "$TMPDIR/n"`); o.code != 0 {
			t.Fatalf("code %d, stderr %q", o.code, o.stderr)
		}
		if o := w.run(t, `cat "$TMPDIR/n"`); o.stdout != "kept\n" {
			t.Errorf("in the same session: stdout %q, stderr %q", o.stdout, o.stderr)
		}
		other := *w
		other.policy.SessionID = "another/session" // which is no name of a directory
		if o := other.run(t, `cat "$TMPDIR/n"`); o.code == 0 {
			t.Errorf("in another session: stdout %q", o.stdout)
		}
	})
}

func TestTmpIsTheSessionsOwnUnderBwrap(t *testing.T) {
	t.Parallel()
	w := pinned(t, sandboxlocal.BackendBwrap)
	host, err := os.CreateTemp("/tmp", "dsh-test-*")
	must(t, err)
	defer os.Remove(host.Name())
	host.Close()
	if o := w.run(t, `echo 1 > /tmp/n; ls -A /tmp`); strings.Contains(o.stdout, filepath.Base(host.Name())) || !strings.Contains(o.stdout, "n\n") {
		t.Errorf("/tmp shows %q, stderr %q", o.stdout, o.stderr)
	}
	if o := w.run(t, `cat /tmp/n; cd /tmp && mkdir -p deep`); o.stdout != "1\n" {
		t.Errorf("the next call: stdout %q, stderr %q", o.stdout, o.stderr)
	}
	s := w.spec("pwd")
	s.Dir = "/tmp/deep"
	if o := w.runSpec(t, s); o.stdout != "/tmp/deep\n" {
		t.Errorf("a directory that an earlier call made: stdout %q, stderr %q", o.stdout, o.stderr)
	}
	absent(t, "/tmp/deep")
}

func TestPrivateFilesystemsAreNotTheHosts(t *testing.T) {
	t.Parallel()
	w := pinned(t, sandboxlocal.BackendBwrap)
	for _, mode := range []sandbox.Mode{sandbox.ReadOnly, sandbox.WorkspaceWrite} {
		o := w.with(mode).run(t, `echo x > /dev/shm/dsh-test-esc && ls /run; ls /dev`)
		if o.code != 0 {
			t.Errorf("%s: code %d, stderr %q", mode, o.code, o.stderr)
		}
		absent(t, "/dev/shm/dsh-test-esc")
		if strings.Contains(o.stdout, "systemd") || strings.Contains(o.stdout, "kmsg") {
			t.Errorf("%s: /run and /dev show %q", mode, o.stdout)
		}
		if o := w.with(mode).run(t, `touch /run/x /dev/x`); o.code == 0 {
			t.Errorf("%s: /run or /dev can be written", mode)
		}
	}
}

func names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	all := make([]string, len(entries))
	for i, e := range entries {
		all[i] = e.Name()
	}
	return all
}

func clear(t testing.TB, dir string) {
	t.Helper()
	for _, name := range names(t, dir) {
		must(t, os.RemoveAll(filepath.Join(dir, name)))
	}
}

func TestNothingAboutAFileOutsideIsChangedUnderBwrap(t *testing.T) {
	t.Parallel()
	w := pinned(t, sandboxlocal.BackendBwrap)
	file := filepath.Join(w.outside, "secret")
	before, err := os.Stat(file)
	must(t, err)
	for _, command := range []string{
		`chmod 777 F`, `chown $(id -u) F`, `touch F`, `touch -d 2001-01-01 F`, `touch -a F`, `setfattr -n user.x -v y F`,
		`python3 -c 'import os; os.setxattr("F", "user.x", b"y")'`, `chmod 777 $(dirname F)`,
	} {
		command = strings.NewReplacer("F", file, "python3", python()).Replace(command)
		if o := w.run(t, command); o.code == 0 {
			t.Errorf("%s: exit 0", command)
		}
	}
	after, err := os.Stat(file)
	must(t, err)
	if after.Mode() != before.Mode() || after.ModTime() != before.ModTime() {
		t.Errorf("mode %v and time %v have become %v and %v", before.Mode(), before.ModTime(), after.Mode(), after.ModTime())
	}
}

func TestTmpItselfCanBeTheWorkspace(t *testing.T) {
	// Where other hosts of this machine keep their files in /tmp, Landlock refuses it, rightly; here they are elsewhere.
	t.Setenv("TMPDIR", visibleTemp(t))
	dir, err := os.MkdirTemp("/tmp", "dsh-workspace-")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	for _, backend := range []string{sandboxlocal.BackendBwrap, sandboxlocal.BackendLandlock} {
		t.Run(backend, func(t *testing.T) {
			w := pinned(t, backend)
			w.policy.WorkspaceRoot = "/tmp"
			w.ws = dir
			if o := w.run(t, `touch f && mktemp > name && rm "$(cat name)"`); o.code != 0 {
				t.Errorf("code %d, stderr %q", o.code, o.stderr)
			}
			if o := w.run(t, `echo x > `+quote(w.outside)+`/ESC`); o.code == 0 {
				t.Error("outside: exit 0")
			}
		})
	}
}

func TestLandlockRefusesATmpWithOtherHostsFiles(t *testing.T) {
	tmp := realTemp(t)
	t.Setenv("TMPDIR", tmp)
	must(t, os.Mkdir(filepath.Join(tmp, "dsh-"+itoa(os.Getuid())), 0o700))
	w := pinned(t, sandboxlocal.BackendLandlock)
	w.policy.WorkspaceRoot = tmp
	unavailable(t, w, `touch ran`, "holds dsh's own files")
}
