package subprocesslocal_test

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"dsh/internal/testkit"
	"dsh/module"
	"dsh/modules/subprocess"
	"dsh/modules/subprocess/subprocesstest"
	"dsh/modules/subprocesslocal"
)

// pinned returns a configuration that has no choice.
func pinned(kind subprocess.RangeKind) subprocesslocal.Config {
	c := subprocesslocal.DefaultConfig()
	c.Range, c.EnterScope = string(kind), kind == subprocess.RangeScope
	return c
}

func runtimeOf(kind subprocess.RangeKind) subprocesstest.NewRuntime {
	return func(t testing.TB) (subprocess.Runtime, module.Runner) {
		t.Helper()
		res, err := subprocesslocal.New(subprocesslocal.Params{Config: pinned(kind), Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		return res.Runtime, res.Runner
	}
}

// TestEveryKindConforms runs the suite over each kind of range, as root and as an ordinary user.
func TestEveryKindConforms(t *testing.T) {
	for name, c := range map[string]struct {
		kind  subprocess.RangeKind
		world *testkit.World
	}{
		"cgroup":                     {kind: subprocess.RangeCgroup},
		"cgroup of an ordinary user": {subprocess.RangeCgroup, &testkit.World{UID: 65534}},
		"scope":                      {subprocess.RangeScope, &testkit.World{UserManager: true}},
		"scope of an ordinary user":  {subprocess.RangeScope, &testkit.World{UserManager: true, UID: 65534}},
		"group":                      {kind: subprocess.RangeGroup},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			if c.world != nil && !in(t, *c.world) {
				return
			}
			if c.kind == subprocess.RangeCgroup {
				needCgroups(t)
			}
			rt := startWith(t, pinned(c.kind))
			if got := rt.Range(); got != c.kind {
				t.Fatalf("got the kind %q", got)
			}
			subprocesstest.Run(t, runtimeOf(c.kind), subprocesstest.Options{Ranges: true})
		})
	}
}

// in is testkit.In, at the same time as other tests that are in a world of their own.
func in(t *testing.T, w testkit.World) bool {
	t.Helper()
	if os.Getenv("TESTKIT_INSIDE") != t.Name() {
		t.Parallel()
	}
	return testkit.In(t, w)
}

// asEachUser runs f in a world of root's and in one of an ordinary user.
func asEachUser(t *testing.T, w testkit.World, f func(t *testing.T)) {
	t.Helper()
	for _, w.UID = range everybody {
		w := w // of this run, which is later than the loop
		t.Run(fmt.Sprintf("as_%d", w.UID), func(t *testing.T) {
			if in(t, w) {
				f(t)
			}
		})
	}
}

// needCgroups skips a test on a machine where this process can make no cgroups.
func needCgroups(t testing.TB) {
	t.Helper()
	res, err := subprocesslocal.New(subprocesslocal.Params{
		Config: subprocesslocal.DefaultConfig(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Runner.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	kind := res.Runtime.Range()
	if err := res.Runner.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	testkit.Need(t, "a writable cgroup of version 2", kind == subprocess.RangeCgroup)
}
