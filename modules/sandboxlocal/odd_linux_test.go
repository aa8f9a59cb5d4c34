package sandboxlocal_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"dsh/internal/testkit"
	"dsh/modules/sandbox"
	"dsh/modules/sandboxlocal"
	"dsh/modules/subprocess"
)

func TestOddWorkspacesWork(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, w *world, backend string) {
		base := w.outside
		shmDir, err := os.MkdirTemp("/dev/shm", "dsh-test-")
		must(t, err)
		t.Cleanup(func() { os.RemoveAll(shmDir) })
		places := map[string]string{
			"a name that is a program":    filepath.Join(base, "o d'q\"$(touch PWN)\n日本"),
			"a name that is an option":    filepath.Join(base, "--bind"),
			"under /tmp":                  filepath.Join(realTemp(t), "deep/er/ws"),
			"under /dev/shm":              shmDir,
			"invalid UTF-8":               filepath.Join(base, "\xff\xfe"),
			"a name of bubblewrap's root": filepath.Join(base, "newroot"),
		}
		if root() {
			dir, err := os.MkdirTemp("/run", "dsh-test-")
			must(t, err)
			t.Cleanup(func() { os.RemoveAll(dir) })
			places["under /run"] = filepath.Join(dir, "ws")
		}
		for name, place := range places {
			must(t, os.MkdirAll(place, 0o700))
			for _, mode := range []sandbox.Mode{sandbox.WorkspaceWrite, sandbox.ReadOnly} {
				w := w.with(mode)
				w.ws, w.policy.WorkspaceRoot = place, place
				write(t, filepath.Join(place, "here"), "")
				command := `test "$PWD" -ef . && test -e here && pwd -P && ls`
				want := place + "\nhere\n"
				if mode == sandbox.WorkspaceWrite {
					command = `touch f && ` + command
					want = place + "\nf\nhere\n"
				}
				o := w.run(t, command)
				if o.code != 0 || o.stdout != want {
					t.Errorf("%s, %s: code %d, stdout %q, want %q; stderr %q, %+v", name, mode, o.code, o.stdout, want, o.stderr, o.verdict)
				}
				os.Remove(filepath.Join(place, "f"))
			}
		}
		if left := names(t, base); strings.Contains(strings.Join(left, " "), "PWN ") {
			t.Errorf("outside is %q", left)
		}
	})
}

func TestAWorkspaceThroughALinkWorks(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, w *world, backend string) {
		link := filepath.Join(w.outside, "link")
		must(t, os.Symlink(w.ws, link))
		s := w.spec(`touch f && test "$PWD" -ef . && pwd -P`)
		s.Dir = link // the policy has the real one
		if o := w.runSpec(t, s); o.code != 0 || o.stdout != w.ws+"\n" {
			t.Errorf("code %d, stdout %q, stderr %q", o.code, o.stdout, o.stderr)
		}
	})
}

func TestALinkedWorktreeWorks(t *testing.T) {
	t.Parallel()
	testkit.NeedProgram(t, "git")
	eachBackend(t, func(t *testing.T, w *world, backend string) {
		git := exec.Command("bash", "-ec", `cd "$1"; git init -q main; cd main; git -c user.name=x -c user.email=x@y commit -q --allow-empty -m x
			mkdir hooks; rm -rf .git/hooks; ln -s ../hooks .git/hooks; git worktree add -q "$2/tree"`, "bash", w.outside, w.ws)
		git.Env = append(os.Environ(), "HOME="+w.outside)
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		w.ws = filepath.Join(w.ws, "tree")
		w.policy.WorkspaceRoot = w.ws
		if o := w.run(t, `pwd && touch f && git -c safe.directory='*' status --short`); o.code != 0 || !strings.Contains(o.stdout, "?? f") {
			t.Errorf("code %d, stdout %q, stderr %q", o.code, o.stdout, o.stderr)
		}
	})
}

func TestAWorkspaceThatWasReplacedIsTheNewOne(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, w *world, backend string) {
		if o := w.run(t, `touch f`); o.code != 0 {
			t.Fatalf("code %d, stderr %q", o.code, o.stderr)
		}
		must(t, os.RemoveAll(w.ws))
		must(t, os.Mkdir(w.ws, 0o700))
		if o := w.run(t, `touch f`); o.code != 0 {
			t.Errorf("code %d, stderr %q", o.code, o.stderr)
		}
	})
}

func TestADirectoryThatCannotBeUsedIsNamed(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, w *world, backend string) {
		write(t, filepath.Join(w.ws, "file"), "")
		dirs := []string{filepath.Join(w.ws, "missing"), filepath.Join(w.ws, "file")}
		if backend == sandboxlocal.BackendBwrap {
			dirs = append(dirs, "/tmp/missing", "/run/lock", realTemp(t))
		}
		for _, dir := range dirs {
			s := w.spec("pwd")
			s.Dir = dir
			_, err := w.try(t, s)
			if e := (*subprocess.DirError)(nil); !errors.As(err, &e) || e.Dir != dir {
				t.Errorf("%s: got %v, want the directory's error", dir, err)
			}
		}
		for _, dir := range []string{"/", "/tmp", w.outside, "/usr/bin", "/run"} {
			s := w.spec("pwd -P")
			s.Dir = dir
			if o, err := w.try(t, s); err != nil || o.stdout != dir+"\n" {
				t.Errorf("%s: got %q, %v", dir, o.stdout, err)
			}
		}
	})
}

func TestWhatTheLoaderIsToldIsForTheCommand(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, w *world, backend string) {
		w.env = map[string]string{"LD_LIBRARY_PATH": "/nonexistent", "LD_PRELOAD": "", "DISPLAY": ":7", "TMPDIR": w.outside}
		o := w.run(t, `echo "$LD_LIBRARY_PATH|${LD_PRELOAD-unset}|$DISPLAY"; tr '\0' '\n' < /proc/1/environ 2>/dev/null | grep -c ^LD_; test "$TMPDIR" != `+quote(w.outside)+` && echo moved`)
		if lines := strings.Split(o.stdout, "\n"); len(lines) < 3 || lines[0] != "/nonexistent||:7" || lines[2] != "moved" ||
			backend == sandboxlocal.BackendBwrap && lines[1] != "0" {
			t.Errorf("stdout %q, stderr %q", o.stdout, o.stderr)
		}
	})
}

func TestDevicesAreHandedThrough(t *testing.T) {
	t.Parallel()
	for _, backend := range []string{sandboxlocal.BackendBwrap, sandboxlocal.BackendLandlock} {
		pinned(t, backend)
		for _, devices := range [][]string{{}, {"/dev/fuse", "/dev/not-there"}} {
			w := build(t, func(c *sandboxlocal.Config) { c.Backend, c.Devices = backend, devices })
			f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
			if err != nil {
				t.Skip("this test needs a /dev/fuse that this user may open")
			}
			f.Close()
			o := w.run(t, `exec 3<>/dev/fuse`)
			if got, want := o.code == 0, len(devices) > 0; got != want {
				t.Errorf("%s with %q: opened %v; stderr %q", backend, devices, got, o.stderr)
			}
			if o := w.run(t, `mknod /dev/x c 1 3`); o.code == 0 {
				t.Errorf("%s with %q: a device can be made", backend, devices)
			}
		}
	}
}
