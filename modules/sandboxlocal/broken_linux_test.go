package sandboxlocal_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dsh/internal/testkit"
	"dsh/modules/sandbox"
	"dsh/modules/sandboxlocal"
)

// path puts a directory with a program in front of what PATH finds. The tests of this file do not run beside others.
func fakeBwrap(t *testing.T, script string) (program string) {
	t.Helper()
	dir := visibleTemp(t)
	must(t, os.Chmod(dir, 0o755))
	program = filepath.Join(dir, "bwrap")
	must(t, os.WriteFile(program, []byte("#!/bin/bash\n"+script), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return program
}

const refusesUserNamespaces = "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1\n"

func complete(t testing.TB, w *world, command string, proven bool) (outcome, error) {
	t.Helper()
	return w.complete(t, w.spec(command), proven)
}

func TestABrokenRunnerGivesWayToTheNextBackend(t *testing.T) {
	fakeBwrap(t, refusesUserNamespaces)
	for _, proven := range []bool{false, true} {
		w := build(t, nil)
		testkit.Need(t, "Landlock in the kernel", w.provider.Backends(t.Context())[1].Usable)
		w = build(t, nil)
		o, err := complete(t, w, `echo hi; touch `+quote(w.outside)+`/ESC`, proven)
		if err != nil || o.stdout != "hi\n" || o.confined.Backend != "landlock" || o.confined.Enforcement != sandbox.Partial {
			t.Errorf("proven %v: got %+v, %v", proven, o, err)
		}
		absent(t, filepath.Join(w.outside, "ESC"))
	}
}

func TestNoBackendRunsNothing(t *testing.T) {
	for _, c := range []struct{ name, script, words string }{
		{"refused by the kernel", refusesUserNamespaces, "bwrap: setting up uid map: Permission denied"},
		{"says nothing", "exit 7", "status 7"},
		{"an unknown option", "echo 'bwrap: Unknown option --json-status-fd' >&2; exit 1", "Unknown option"},
		{"says that all is well, and is not", "exit 0", ""},
		{"killed", "kill -9 $$", "killed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fakeBwrap(t, c.script)
			for _, proven := range []bool{false, true} {
				w := build(t, func(c *sandboxlocal.Config) { c.Backend = sandboxlocal.BackendBwrap })
				o, err := complete(t, w, `touch ran; echo ran`, proven)
				absent(t, filepath.Join(w.ws, "ran"))
				if c.words == "" || c.words == "killed" && !proven {
					// A foreground command that a runner swallows whole is lost, but it was not run unconfined.
					if o.stdout != "" {
						t.Errorf("proven %v: stdout %q", proven, o.stdout)
					}
					continue
				}
				var u *sandbox.UnavailableError
				if !errors.As(err, &u) || !strings.Contains(u.Reason, c.words) {
					t.Errorf("proven %v: got %+v, %v, want it unavailable for %q", proven, o, err, c.words)
				}
			}
		})
	}
}

func TestTheRunnersWordsAreExplained(t *testing.T) {
	fakeBwrap(t, refusesUserNamespaces)
	w := build(t, func(c *sandboxlocal.Config) { c.Backend = sandboxlocal.BackendBwrap })
	_, err := complete(t, w, `touch ran`, false)
	if err == nil || !strings.Contains(err.Error(), "apparmor_restrict_unprivileged_userns") || strings.Contains(err.Error(), "not found") {
		t.Errorf("got %v, want a hint at user namespaces", err)
	}
	if n := strings.Count(err.Error(), "bwrap: "); n != 1 {
		t.Errorf("the runner is named %d times: %v", n, err)
	}
}

func TestABackendThatDisappearsIsNoticed(t *testing.T) {
	real := testkit.NeedProgram(t, "bwrap")
	program := fakeBwrap(t, "exec "+real+` "$@"`)
	w := build(t, func(c *sandboxlocal.Config) { c.Backend = sandboxlocal.BackendBwrap })
	t.Setenv("PATH", filepath.Dir(program)+":/nonexistent:"+filepath.Dir(real))
	if o, err := complete(t, w, `echo hi`, false); err != nil || o.stdout != "hi\n" {
		t.Fatalf("while it is there: %+v, %v", o, err)
	}
	must(t, os.WriteFile(program, []byte("#!/bin/bash\n"+refusesUserNamespaces), 0o755))
	for _, proven := range []bool{false, true, false} {
		_, err := complete(t, w, `touch ran`, proven)
		absent(t, filepath.Join(w.ws, "ran"))
		var u *sandbox.UnavailableError
		if proven && err == nil {
			continue // it was proven once; what it is now, the run shows
		}
		if !errors.As(err, &u) || !strings.Contains(u.Reason, "uid map") {
			t.Errorf("proven %v: broken meanwhile: got %v", proven, err)
		}
	}
	must(t, os.WriteFile(program, []byte("#!/bin/bash\nexec "+real+` "$@"`), 0o755))
	if o, err := complete(t, w, `echo hi`, false); err != nil || o.stdout != "hi\n" {
		t.Errorf("repaired: %+v, %v", o, err)
	}
	must(t, os.Remove(program))
	if o, err := complete(t, w, `echo hi`, false); err != nil || o.stdout != "hi\n" {
		t.Errorf("removed, with another one on PATH: %+v, %v", o, err)
	}
}

func TestNoProgramToConfineWithRunsNothing(t *testing.T) {
	testkit.NeedProgram(t, "bash")
	dir := visibleTemp(t)
	for _, name := range []string{"bash", "true", "touch"} {
		must(t, os.Symlink(testkit.NeedProgram(t, name), filepath.Join(dir, name)))
	}
	t.Setenv("PATH", dir)
	for _, proven := range []bool{false, true} {
		w := build(t, func(c *sandboxlocal.Config) { c.Backend = sandboxlocal.BackendBwrap })
		_, err := complete(t, w, `touch ran`, proven)
		absent(t, filepath.Join(w.ws, "ran"))
		var u *sandbox.UnavailableError
		if !errors.As(err, &u) || !strings.Contains(u.Reason, "was not found on PATH") {
			t.Errorf("proven %v: got %v", proven, err)
		}
	}
}

func TestAHungProbeEnds(t *testing.T) {
	fakeBwrap(t, "exec sleep 4126")
	w := build(t, func(c *sandboxlocal.Config) { c.Backend, c.ProbeTimeoutMs = sandboxlocal.BackendBwrap, 100 })
	_, err := complete(t, w, `touch ran`, true)
	if err == nil || !strings.Contains(err.Error(), "the probe took longer than 100ms") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("no time left"))
	defer cancel()
	w = build(t, func(c *sandboxlocal.Config) { c.Backend = sandboxlocal.BackendBwrap })
	_, err = w.provider.Confine(ctx, sandbox.Request{Spec: w.spec("touch ran"), Policy: w.policy, Proven: true})
	if err == nil || err.Error() != "no time left" {
		t.Errorf("a deadline while probing: got %v, want its cause", err)
	}
	if left := testkit.Processes("sleep", "4126"); len(left) > 0 {
		t.Errorf("probes go on: %v", left)
	}
}

func TestACustomRunner(t *testing.T) {
	dir := visibleTemp(t)
	must(t, os.Chmod(dir, 0o755))
	runner := filepath.Join(dir, "runner")
	open := func(script string) *world {
		must(t, os.WriteFile(runner, []byte("#!/bin/bash\n"+script), 0o755))
		return build(t, func(c *sandboxlocal.Config) {
			c.RunnerCommand, c.RunnerFailureSignatures = []string{runner, "--first"}, []string{"Runner: "}
		})
	}
	w := open(`[ "$1" = --first ] || exit 9; while [ "$1" != -- ]; do shift; done; shift; exec "$@"`)
	if o, err := complete(t, w, `echo hi`, true); err != nil || o.stdout != "hi\n" || o.confined.Backend != "custom" {
		t.Errorf("got %+v, %v", o, err)
	}
	w = open(`echo 'some words' >&2; echo 'RUNNER: cannot confine' >&2; exit 3`)
	_, err := complete(t, w, `touch ran`, false)
	var u *sandbox.UnavailableError
	if !errors.As(err, &u) || u.Reason != "RUNNER: cannot confine" {
		t.Errorf("got %v", err)
	}
	absent(t, filepath.Join(w.ws, "ran"))
	// A runner that complains after the command was started is not given it again.
	w = open(`while [ "$1" != -- ]; do shift; done; shift; "$@"; echo 'runner: cannot clean up' >&2; exit 3`)
	_, err = complete(t, w, `echo once >> times`, false)
	if !errors.As(err, &u) || read(t, filepath.Join(w.ws, "times")) != "once\n" {
		t.Errorf("got %v; the command was run %q", err, read(t, filepath.Join(w.ws, "times")))
	}
	must(t, os.Remove(runner))
	unavailable(t, w, `touch ran`, "does not exist")
}

func TestEveryBackendIsListedWithItsReason(t *testing.T) {
	fakeBwrap(t, refusesUserNamespaces)
	w := build(t, nil)
	all := w.provider.Backends(t.Context())
	if len(all) != 2 || all[0].Name != "bwrap" || all[1].Name != "landlock" {
		t.Fatalf("got %+v", all)
	}
	if all[0].Usable || all[0].Chosen || !strings.Contains(all[0].Reason, "uid map") || all[0].Enforcement != "" {
		t.Errorf("the broken one: %+v", all[0])
	}
	testkit.Need(t, "Landlock in the kernel", all[1].Usable)
	if !all[1].Chosen || all[1].Enforcement != sandbox.Partial || len(all[1].NotEnforced) == 0 {
		t.Errorf("the other: %+v", all[1])
	}
}
