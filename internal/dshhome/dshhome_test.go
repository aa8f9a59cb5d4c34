package dshhome_test

import (
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"dsh/internal/dshhome"
	"dsh/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestDir(t *testing.T) {
	wd := t.TempDir()
	t.Chdir(wd)
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ home, set, want string }{
		{"/home/somebody", "", "/home/somebody/.dsh"},
		{"/home/somebody", "~", "/home/somebody"},
		{"/home/somebody", "~/elsewhere", "/home/somebody/elsewhere"},
		{"/home/somebody", "/opt/dsh", "/opt/dsh"},
		{"/home/somebody", "here", filepath.Join(wd, "here")},
		{"", "", filepath.Join(me.HomeDir, ".dsh")},
		{".", "", filepath.Join(me.HomeDir, ".dsh")},
		{"relative/home", "~/x", filepath.Join(me.HomeDir, "x")},
	} {
		t.Setenv("HOME", c.home)
		t.Setenv("DSH_HOME", c.set)
		if got, err := dshhome.Dir(); err != nil || got != c.want {
			t.Errorf("HOME=%q and DSH_HOME=%q give %q, %v, want %q", c.home, c.set, got, err, c.want)
		}
	}
}

func TestATildeWithANameIsRefused(t *testing.T) {
	t.Setenv("DSH_HOME", "~somebody/dsh")
	if got, err := dshhome.Dir(); err == nil || !strings.Contains(err.Error(), "DSH_HOME is ~somebody/dsh: ") {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestTheSparePlaceIsNotInTheWorkingDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	for set, want := range map[string]string{"": "/tmp", ".": "/tmp", "tmp": "/tmp", "/var/tmp": "/var/tmp"} {
		t.Setenv("TMPDIR", set)
		if got := dshhome.Spare(); filepath.Dir(got) != want {
			t.Errorf("TMPDIR=%q gives %s, want it in %s", set, got, want)
		}
	}
}
