//go:build unix

package subprocesstest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dsh/modules/subprocess"
)

func (s suite) refusals(t *testing.T) {
	rt := s.start(t)
	for _, c := range []struct {
		name, field string
		spoil       func(*subprocess.Spec)
	}{
		{"no argv", "argv[0]", func(s *subprocess.Spec) { s.Argv = nil }},
		{"empty program", "argv[0]", func(s *subprocess.Spec) { s.Argv[0] = "" }},
		{"NUL in the program", "argv[0]", func(s *subprocess.Spec) { s.Argv[0] = "ba\x00sh" }},
		{"NUL in an argument", "argv[2]", func(s *subprocess.Spec) { s.Argv[2] += "\x00" }},
		{"NUL in the directory", "dir", func(s *subprocess.Spec) { s.Dir += "\x00" }},
		{"relative directory", "dir", func(s *subprocess.Spec) { s.Dir = "." }},
		{"no directory", "dir", func(s *subprocess.Spec) { s.Dir = "" }},
		{"NUL in a value", "env", func(s *subprocess.Spec) { s.Env.Set = map[string]string{"A": "\x00"} }},
		{"NUL in a name", "env", func(s *subprocess.Spec) { s.Env.Set = map[string]string{"A\x00": ""} }},
		{"equals sign in a name", "env", func(s *subprocess.Spec) { s.Env.Set = map[string]string{"A=B": ""} }},
		{"empty name", "env", func(s *subprocess.Spec) { s.Env.Set = map[string]string{"": ""} }},
		{"grace 0", "grace", func(s *subprocess.Spec) { s.Grace = 0 }},
		{"negative grace", "grace", func(s *subprocess.Spec) { s.Grace = -1 }},
		{"grace past the limit", "grace", func(s *subprocess.Spec) { s.Grace = subprocess.MaxGrace + 1 }},
		{"no stdout", "stdout", func(s *subprocess.Spec) { s.Stdout = subprocess.Output{} }},
		{"no stderr", "stderr", func(s *subprocess.Spec) { s.Stderr = subprocess.Output{} }},
		{"stdout twice", "stdout", func(s *subprocess.Spec) { s.Stdout.Pipe = true }},
		{"negative tail", "stderr", func(s *subprocess.Spec) { s.Stderr.Collect.MaxBytes = -1 }},
		{"negative file", "stderr", func(s *subprocess.Spec) { s.Stderr.Collect.SpillMaxBytes = -1 }},
		{"stdin twice", "stdin", func(s *subprocess.Spec) { s.Stdin = subprocess.Stdin{Pipe: true, Bytes: []byte("x")} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec, unstarted := marked(t)
			c.spoil(&spec)
			_, err := rt.Spawn(t.Context(), spec)
			if invalid, ok := errors.AsType[*subprocess.InvalidError](err); !ok || invalid.Field != c.field {
				t.Errorf("got %v, want an InvalidError for %s", err, c.field)
			}
			unstarted()
		})
	}
	t.Run("grace at the limit is none", func(t *testing.T) {
		spec := bash(t, "true")
		spec.Grace = subprocess.MaxGrace
		run(t, rt, spec)
	})
	t.Run("ended context", func(t *testing.T) {
		spec, unstarted := marked(t)
		why := errors.New("the caller went away")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		if _, err := rt.Spawn(ctx, spec); !errors.Is(err, why) {
			t.Errorf("got %v, want the context's cause", err)
		}
		unstarted()
	})
	t.Run("directory", s.badDirectories)
	t.Run("extra files are closed", func(t *testing.T) {
		spec := bash(t, "true")
		spec.Grace = 0
		spec.ExtraFiles = []*os.File{temporary(t, "")}
		rt.Spawn(t.Context(), spec)
		if err := spec.ExtraFiles[0].Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("after a refusal the file is still open: closing it gave %v", err)
		}
	})
	t.Run("on the forking thread", func(t *testing.T) {
		spec, unstarted := marked(t)
		why := errors.New("no ruleset")
		spec.OnThread = func() error { return why }
		_, err := rt.Spawn(t.Context(), spec)
		// A runtime that cannot do it refuses the Spec.
		if invalid, ok := errors.AsType[*subprocess.InvalidError](err); !ok && !errors.Is(err, why) || ok && invalid.Field != "onThread" {
			t.Errorf("got %v, want the error of OnThread", err)
		}
		unstarted()
	})
}

func (s suite) badDirectories(t *testing.T) {
	rt := s.start(t)
	file := temporary(t, "").Name()
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(closed, 0); err != nil {
		t.Fatal(err)
	}
	dirs := []string{filepath.Join(t.TempDir(), "missing"), file}
	if os.Geteuid() != 0 { // root may enter everything
		dirs = append(dirs, closed)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			spec, unstarted := marked(t)
			spec.Dir = dir
			_, err := rt.Spawn(t.Context(), spec)
			if e, ok := errors.AsType[*subprocess.DirError](err); !ok || e.Dir != dir || e.Err == nil {
				t.Errorf("got %v, want a DirError for %s", err, dir)
			}
			if err != nil && strings.Contains(err.Error(), "bash") {
				t.Errorf("%q blames the program", err)
			}
			unstarted()
		})
	}
}

func (s suite) executables(t *testing.T) {
	// Three directories on the PATH have the program; the first two entries do not count.
	bin := t.TempDir()
	t.Chdir(t.TempDir())
	for _, dir := range []string{".", "relative", bin} {
		os.Mkdir(dir, 0o755)
		if err := os.WriteFile(filepath.Join(dir, "here"), []byte("#!/bin/sh\necho from "+dir+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	plain := filepath.Join(bin, "plain")
	if err := os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", ":relative:.:"+bin+":"+os.Getenv("PATH"))
	rt := s.start(t)

	if path, err := rt.ResolveExecutable(t.Context(), "here"); err != nil || path != filepath.Join(bin, "here") {
		t.Errorf("got %q, %v, want the program of the first absolute entry", path, err)
	}
	spec := bash(t, "")
	spec.Argv = []string{"here"}
	if got := run(t, rt, spec); got != "from "+bin+"\n" {
		t.Errorf("a bare name ran %q", got)
	}
	if path, err := rt.ResolveExecutable(t.Context(), filepath.Join(bin, "here")); err != nil || path != filepath.Join(bin, "here") {
		t.Errorf("got %q, %v, want an absolute path as it is", path, err)
	}
	for _, name := range []string{"", "./here", "relative/here", "no-such-program", plain, bin, bin + "/missing"} {
		_, err := rt.ResolveExecutable(t.Context(), name)
		if e, ok := errors.AsType[*subprocess.ExecutableError](err); !ok || e.Name != name {
			t.Errorf("%q: got %v, want an ExecutableError", name, err)
		}
		if name == "" {
			continue
		}
		spec.Argv = []string{name}
		_, err = rt.Spawn(t.Context(), spec)
		if e, ok := errors.AsType[*subprocess.ExecutableError](err); !ok || e.Name != name {
			t.Errorf("spawn %q: got %v, want an ExecutableError", name, err)
		}
	}
}

// marked returns a Spec that leaves a mark when it is carried out, and a check that it was not.
func marked(t testing.TB) (spec subprocess.Spec, unstarted func()) {
	spec = bash(t, "touch mark")
	mark := filepath.Join(spec.Dir, "mark")
	return spec, func() {
		t.Helper()
		if exists(mark) {
			t.Error("the command ran although it was refused")
		}
	}
}

func temporary(t testing.TB, content string) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := f.WriteString(content); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	return f
}
