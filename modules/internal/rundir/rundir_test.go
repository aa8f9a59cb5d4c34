//go:build unix

package rundir_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dsh/internal/testkit"
	"dsh/modules/internal/rundir"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const (
	mine   = "00000000000000aa"
	theirs = "00000000000000bb"
)

func spill(t *testing.T, d *rundir.Dir, name string) string {
	t.Helper()
	f, err := d.CreateSpill(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return f.Name()
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestMadeAtFirstNeedAndPrivate(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	d := rundir.New(home, mine)
	if err := d.Sweep(t.Context(), 0); err != nil {
		t.Error(err)
	}
	if exists(home) {
		t.Error("something was made before there was a file")
	}
	path := spill(t, d, "1-x-stdout.log")
	if want := filepath.Join(home, "run", mine, "spill", "1-x-stdout.log"); path != want {
		t.Errorf("got %s, want %s", path, want)
	}
	for dir := path; dir != filepath.Dir(home); dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is %v, %v, want it for this user alone", dir, info.Mode(), err)
		}
	}
	if _, err := d.CreateSpill("1-x-stdout.log"); err == nil {
		t.Error("a file that exists was taken")
	}
	if err := d.Close(); err != nil || !exists(path) {
		t.Errorf("close: %v, and the file is there: %v", err, exists(path))
	}
}

func TestNothingIsLeftOfAHostWithoutFiles(t *testing.T) {
	home := t.TempDir()
	d := rundir.New(home, mine)
	os.Remove(spill(t, d, "x"))
	if err := d.Close(); err != nil || exists(filepath.Join(home, "run", mine)) {
		t.Errorf("got %v and the directory", err)
	}
}

func TestEverySessionHasADirectoryOfItsOwn(t *testing.T) {
	d := rundir.New(t.TempDir(), mine)
	defer d.Close()
	seen := map[string]string{}
	for _, session := range []string{"", "a", "session-1.x_y", "../a", ".", "..", "a/b", "a\x00b", strings.Repeat("a", 100), strings.Repeat("a", 101), strings.Repeat("a", 1000)} {
		path, err := d.Temp(session)
		if err != nil || !exists(path) {
			t.Fatalf("session %.20q: %v", session, err)
		}
		if other, taken := seen[path]; taken || filepath.Base(filepath.Dir(path)) != "tmp" {
			t.Errorf("session %.20q has %s, as has %.20q", session, path, other)
		}
		seen[path] = session
	}
}

func TestSweepTellsTheDeadByTheirLock(t *testing.T) {
	home := t.TempDir()
	alive, dead := rundir.New(home, mine), rundir.New(home, theirs)
	kept, left := spill(t, alive, "x"), spill(t, dead, "x")
	tmp := filepath.Join(home, "run", theirs, "tmp", "session")
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	dead.Close()
	defer alive.Close()

	sweeper := rundir.New(home, "00000000000000cc")
	if err := sweeper.Sweep(t.Context(), time.Hour); err != nil {
		t.Error(err)
	}
	if !exists(kept) || !exists(left) || exists(tmp) {
		t.Errorf("a live host's file %v, a dead one's young file %v, its directories %v", exists(kept), exists(left), exists(tmp))
	}
	if err := sweeper.Sweep(t.Context(), 0); err != nil {
		t.Error(err)
	}
	if !exists(kept) || exists(filepath.Join(home, "run", theirs)) {
		t.Error("want the live host's file alone")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := sweeper.Sweep(ended, 0); err != nil {
		t.Error(err)
	}
}

func TestFallback(t *testing.T) {
	tmp, home := t.TempDir(), filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(home, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", tmp)
	d := rundir.New(home, mine)
	path := spill(t, d, "x")
	if !strings.HasPrefix(path, tmp+"/dsh-") {
		t.Errorf("got %s", path)
	}
	fallback := filepath.Dir(filepath.Dir(filepath.Dir(path)))
	if info, err := os.Stat(fallback); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
	d.Close()
	os.RemoveAll(fallback)

	for name, plant := range map[string]func() error{
		"link":           func() error { return os.Symlink(t.TempDir(), fallback) },
		"open to others": func() error { return os.Mkdir(fallback, 0o700|os.ModeSticky) },
	} {
		if err := plant(); err != nil {
			t.Fatal(err)
		}
		if name != "link" {
			os.Chmod(fallback, 0o777)
		}
		if f, err := rundir.New(home, mine).CreateSpill("x"); err == nil {
			t.Errorf("%s: took %s", name, f.Name())
		}
		os.RemoveAll(fallback)
	}
}
