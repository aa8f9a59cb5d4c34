package sandboxlocal_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dsh/modules/sandbox"
	"dsh/modules/sandboxlocal"
)

func TestOwnFilesAreNeverWritable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, home string }{
		{"beside the workspace", "home"},
		{"in the workspace", "ws/.dsh"},
		{"deep in the workspace", "ws/a/b/c"},
		{"in the workspace, not made yet", "ws/x/new"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := pinned(t, sandboxlocal.BackendBwrap)
			w.home = filepath.Join(filepath.Dir(w.ws), c.home)
			if c.name != "in the workspace, not made yet" {
				must(t, os.MkdirAll(w.home, 0o700))
				write(t, filepath.Join(w.home, "cordis.patch.yaml"), "[]\n")
			}
			w.open(t, func(c *sandboxlocal.Config) { c.Backend = sandboxlocal.BackendBwrap })
			if o := w.run(t, "true"); o.code != 0 { // makes what is not there
				t.Fatalf("code %d, stderr %q", o.code, o.stderr)
			}
			before := listing(t, w.home)
			for _, command := range []string{
				`echo "- id: sandbox-policy" >> HOME/cordis.patch.yaml`,
				`echo x > HOME/ESC`,
				`rm -rf HOME`,
				`mv HOME ESC`,
				`mv HOME/cordis.patch.yaml ESC`,
				`ln HOME/cordis.patch.yaml ESC && echo x >> ESC`,
				`mkdir -p m && mount --bind HOME m && echo x > m/ESC`,
				`d=HOME; while [ "$d" != WS ] && [ -n "$d" ]; do d=${d%/*}; mv -T "$d" WS/ESC && mkdir -p HOME && echo x > HOME/ESC && exit 0; done; exit 1`,
				`ln -s HOME s && echo x > s/ESC`,
			} {
				command = strings.NewReplacer("HOME", w.home, "WS", w.ws).Replace(command)
				if o := w.run(t, command); o.code == 0 || o.verdict.RunnerFailed {
					t.Errorf("%s: code %d, stdout %q, stderr %q, %+v", command, o.code, o.stdout, o.stderr, o.verdict)
				}
				absent(t, filepath.Join(w.home, "ESC"))
				if now := listing(t, w.home); now != before {
					t.Fatalf("%s: the home was\n%s, and is\n%s", command, before, now)
				}
			}
			if o := w.run(t, `touch beside`); o.code != 0 {
				t.Errorf("the rest of the workspace: code %d, stderr %q", o.code, o.stderr)
			}
			if _, err := os.Stat(filepath.Join(w.ws, "beside")); err != nil {
				t.Errorf("what was written in the workspace is not there: %v", err)
			}
		})
	}
}

func TestLandlockRefusesAWorkspaceThatHoldsOwnFiles(t *testing.T) {
	t.Parallel()
	w := pinned(t, sandboxlocal.BackendLandlock)
	w.home = filepath.Join(w.ws, ".dsh")
	must(t, os.Mkdir(w.home, 0o700))
	w.open(t, func(c *sandboxlocal.Config) { c.Backend = sandboxlocal.BackendLandlock })
	unavailable(t, w, `touch ran`, "dsh's own files", "Landlock cannot protect")
	if o := w.with(sandbox.ReadOnly).run(t, `touch .dsh/ESC`); o.code == 0 {
		t.Error("read-only: exit 0")
	}
}

// listing is what is in a directory, but for what the session is given to write.
func listing(t testing.TB, dir string) string {
	t.Helper()
	var all strings.Builder
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			fmt.Fprintln(&all, path, info.Mode(), info.ModTime())
		}
		if d.Name() == "session-1" {
			return fs.SkipDir
		}
		return err
	}))
	return all.String()
}

// unavailable expects a command not to be run, for a reason that has these words.
func unavailable(t testing.TB, w *world, command string, words ...string) {
	t.Helper()
	_, err := w.try(t, w.spec(command))
	var u *sandbox.UnavailableError
	if !errors.As(err, &u) || u.Mode != w.policy.Mode || u.Code() != "SANDBOX_UNAVAILABLE" {
		t.Errorf("got %v, want it unavailable", err)
		return
	}
	for _, word := range words {
		if !strings.Contains(u.Error(), word) {
			t.Errorf("%q is not in: %v", word, u)
		}
	}
	absent(t, filepath.Join(w.ws, "ran"))
}

func TestAWorkspaceThatLeadsToOwnFilesIsRefused(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, w *world, backend string) {
		reopen := func(home string) {
			w.home = home
			w.open(t, func(c *sandboxlocal.Config) { c.Backend = backend })
		}
		real := w.home
		must(t, os.Symlink(real, filepath.Join(w.ws, "link")))
		reopen(filepath.Join(w.ws, "link"))
		unavailable(t, w, `touch ran`, "symbolic link", filepath.Join(w.ws, "link"))
		reopen(filepath.Join(w.ws, "link/below"))
		unavailable(t, w, `touch ran`, "symbolic link")

		must(t, os.Mkdir(filepath.Join(real, "ws"), 0o700))
		reopen(real)
		w.policy.WorkspaceRoot = filepath.Join(real, "ws")
		unavailable(t, w, `touch ran`, "inside of")
		w.policy.WorkspaceRoot = real
		unavailable(t, w, `touch ran`, "inside of")
	})
}

func TestTheWholeMachineIsNoWorkspace(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, w *world, backend string) {
		for _, root := range []string{"/", "/proc", "/sys/fs", "/run", "/dev", "/dev/shm"} {
			w.policy.WorkspaceRoot = root
			unavailable(t, w, `touch ran`, root+" cannot be a workspace")
		}
		for _, root := range []string{"", "relative", "/with\x00nul"} {
			w.policy.WorkspaceRoot = root
			unavailable(t, w, `touch ran`, "workspace root")
		}
		link := filepath.Join(w.outside, "link")
		must(t, os.Symlink("/", link))
		w.policy.WorkspaceRoot = link
		unavailable(t, w, `touch ran`, "/ cannot be a workspace")
		w.policy.WorkspaceRoot = filepath.Join(w.outside, "missing")
		unavailable(t, w, `touch ran`, "no such file")
		w.policy = sandbox.Policy{Mode: sandbox.DangerFullAccess, WorkspaceRoot: w.ws}
		unavailable(t, w, `touch ran`, "no confinement")
		w.policy.Mode = "anything"
		unavailable(t, w, `touch ran`, "anything")
	})
}

func TestAHomeThatCannotBeWrittenHasASubstitute(t *testing.T) {
	// Not in the machine's /tmp, which the sandboxes of other tests have to mount over meanwhile.
	t.Setenv("TMPDIR", realTemp(t))
	place := filepath.Join(os.TempDir(), "dsh-"+itoa(os.Getuid()))
	for _, backend := range []string{sandboxlocal.BackendBwrap, sandboxlocal.BackendLandlock} {
		t.Run(backend, func(t *testing.T) {
			w := pinned(t, backend)
			w.home = "/proc/nowhere"
			w.open(t, func(c *sandboxlocal.Config) { c.Backend = backend })
			o := w.run(t, `echo x > "$TMPDIR/f" && cat "$TMPDIR/f" && touch f; ls -d `+quote(place)+`; touch `+quote(place)+`/ESC || exit 7`)
			if o.code != 7 || o.stdout != "x\n"+place+"\n" {
				t.Errorf("code %d, stdout %q, stderr %q", o.code, o.stdout, o.stderr)
			}
			absent(t, filepath.Join(place, "ESC"))
		})
	}
	t.Run("taken by somebody", func(t *testing.T) {
		must(t, os.RemoveAll(place))
		must(t, os.WriteFile(place, nil, 0o600))
		w := pinned(t, sandboxlocal.BackendBwrap)
		w.home = "/proc/nowhere"
		w.open(t, func(c *sandboxlocal.Config) { c.Backend = sandboxlocal.BackendBwrap })
		unavailable(t, w, `touch ran`, "temporary directory", "not a directory")
	})
}

// TestOtherHostsFilesMayComeAndGo has the place of other hosts' files removed between the making of the arguments and their
// use, as their ends do, for each of many commands.
func TestOtherHostsFilesMayComeAndGo(t *testing.T) {
	t.Setenv("TMPDIR", realTemp(t))
	place := filepath.Join(os.TempDir(), "dsh-"+itoa(os.Getuid()))
	w := pinned(t, sandboxlocal.BackendBwrap)
	for range 20 {
		must(t, os.Mkdir(place, 0o700))
		c, err := w.provider.Confine(t.Context(), sandbox.Request{Policy: w.policy, Spec: w.spec("true")})
		must(t, err)
		c.Evidence.Watch().Abandon()
		if i := slices.Index(c.Spec.Argv, place); i >= 0 {
			t.Fatalf("bwrap is told of %s: %q", place, c.Spec.Argv)
		}
		must(t, os.Remove(place))
	}
	must(t, os.Mkdir(place, 0o700))
	if o := w.run(t, `ls `+quote(place)); o.code == 0 {
		t.Error("other hosts' files can be seen")
	}
}

func TestAPlantedLinkLeadsNoMountOutside(t *testing.T) {
	t.Parallel()
	w := pinned(t, sandboxlocal.BackendBwrap)
	dir := realTemp(t) // under /tmp, so that a mount point is needed in the session's own
	must(t, os.MkdirAll(filepath.Join(dir, "ws"), 0o700))
	if o := w.run(t, `mkdir -p `+quote(filepath.Dir(dir))+` && ln -s `+quote(w.outside)+` `+quote(dir)); o.code != 0 {
		t.Fatalf("code %d, stderr %q", o.code, o.stderr)
	}
	w.policy.WorkspaceRoot = filepath.Join(dir, "ws")
	unavailable(t, w, `touch ran`, "safely")
	if left := names(t, w.outside); len(left) != 1 {
		t.Errorf("outside is %q", left)
	}
}
