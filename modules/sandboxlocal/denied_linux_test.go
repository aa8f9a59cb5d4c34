package sandboxlocal_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dsh/modules/sandbox"
	"dsh/modules/sandboxlocal"
)

func TestARefusalIsToldFromAFailure(t *testing.T) {
	t.Parallel()
	w := pinned(t, sandboxlocal.BackendBwrap)
	write(t, filepath.Join(w.ws, "closed"), "x")
	must(t, os.Chmod(filepath.Join(w.ws, "closed"), 0))
	for _, c := range []struct {
		name, command string
		want          bool
	}{
		{"a refused write", `echo x > OUT/ESC`, true},
		{"a refused write and then a lot of other words", `touch OUT/ESC; for ((i = 0; i < 100000; i++)); do echo "line $i" >&2; done; exit 1`, true},
		{"a refused write, told in pieces", `printf 'touch: Read-on' >&2; sleep 0.05; printf 'ly file system\n' >&2; exit 1`, true},
		{"another case", `echo 'EROFS: READ-ONLY FILE SYSTEM' >&2; exit 1`, true},
		{"an ordinary failure", `false`, false},
		{"something that is not there", `mkdir -p sandbox && touch sandbox/x && find . /root/nope`, false},
		{"a refused write that did not matter", `touch OUT/ESC; true`, false},
		{"a file that is closed to everybody", `cat closed`, false},
		{"a refusal that was not the sandbox's", `echo 'Permission denied' >&2; exit 1`, false},
		{"a signal after a refused write", `touch OUT/ESC; kill -TERM $$`, true}, // bubblewrap reports 143
	} {
		o := w.run(t, strings.ReplaceAll(c.command, "OUT", w.outside))
		if o.verdict.RunnerFailed || o.verdict.Denied != c.want || o.verdict.DeniedBy != "" {
			t.Errorf("%s: got %+v, want denied %v; code %d, stderr %.200q", c.name, o.verdict, c.want, o.code, o.stderr)
		}
		if c.name == "a file that is closed to everybody" && !root() && !strings.Contains(o.stderr, "denied") {
			t.Errorf("%s: output is lost: %q", c.name, o.stderr)
		}
	}
}

func TestAGuessIsCalledOne(t *testing.T) {
	t.Parallel()
	w := pinned(t, sandboxlocal.BackendLandlock)
	if o := w.run(t, `echo x > `+quote(w.outside)+`/ESC`); !o.verdict.Denied || o.verdict.DeniedBy != "text" {
		t.Errorf("a refused write: %+v", o.verdict)
	}
	if o := w.run(t, `echo 'permission denied' >&2`); o.verdict.Denied {
		t.Errorf("exit 0: %+v", o.verdict)
	}
	if o := w.run(t, `false`); o.verdict.Denied || o.verdict.DeniedBy != "" {
		t.Errorf("false: %+v", o.verdict)
	}
	if o := w.run(t, `echo 'permission denied' >&2; kill -9 $$`); o.verdict.Denied {
		t.Errorf("a signal: %+v", o.verdict)
	}
}

func TestTheStatusIsTheCommands(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, w *world, backend string) {
		for _, mode := range []sandbox.Mode{sandbox.ReadOnly, sandbox.WorkspaceWrite} {
			for _, code := range []string{"0", "1", "2", "125", "126", "127", "255"} {
				if o := w.with(mode).run(t, "exit "+code); itoa(o.code) != code || o.verdict.RunnerFailed {
					t.Errorf("%s, exit %s: got %d, %+v", mode, code, o.code, o.verdict)
				}
			}
		}
		// A command that talks like its runner is not one.
		if o := w.run(t, `echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1`); o.verdict.RunnerFailed {
			t.Errorf("a command's own words: %+v", o.verdict)
		}
		// A status that reads like the runner's.
		if o := w.run(t, `nosuchcommand`); o.code != 127 || o.verdict.RunnerFailed {
			t.Errorf("nosuchcommand: code %d, %+v", o.code, o.verdict)
		}
	})
}
