package composetest

import (
	"context"
	"fmt"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	"dsh/internal/testkit"
)

// patience is how long goroutines and processes may take to be gone after a stop.
const patience = 2 * time.Second

// label marks the goroutines of a composition in profiles; its value is the composition's own. Goroutines inherit it from
// the one that started them, so that of tests in parallel each answers for its own.
const label = "composetest"

// setenv sets a variable for the test and reports whether it could: a test that runs in parallel to others shares the
// environment with them.
func setenv(t testing.TB, name, value string) (alone bool) {
	defer func() {
		if recover() != nil { // how Setenv says that the test is parallel
			alone = false
		}
	}()
	t.Setenv(name, value)
	return true
}

// watchLeaks marks what the test starts from here on, and returns a function that fails the test for each goroutine
// and each child process of these that is left. In a test that runs in parallel to others nobody can tell whose child a
// process is; testkit.Main looks at those at the end of the package.
func watchLeaks(t testing.TB) (verify func()) {
	id := fmt.Sprintf("%p-%d", t, time.Now().UnixNano())
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(label, id)))
	alone := setenv(t, "DSH_COMPOSETEST", id) // commands are not given it
	before := testkit.Children()

	return func() {
		t.Helper()
		pprof.SetGoroutineLabels(context.Background())
		if left := remaining(func() []string { return goroutines(id) }); len(left) > 0 {
			t.Errorf("goroutines left behind:\n%s", strings.Join(left, "\n\n"))
		}
		if !alone {
			return
		}
		left := remaining(func() []string {
			return slices.DeleteFunc(testkit.Children(), func(child string) bool { return slices.Contains(before, child) })
		})
		if len(left) > 0 {
			t.Errorf("processes left behind:\n%s", strings.Join(left, "\n"))
		}
	}
}

// remaining returns what list still has after patience, or nothing as soon as it has nothing.
func remaining(list func() []string) []string {
	deadline := time.Now().Add(patience)
	for {
		left := list()
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// goroutines returns the stacks of the goroutines that carry the label id.
func goroutines(id string) (stacks []string) {
	var profile strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&profile, 1)
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		// The first to ask for signals starts the one loop that the process keeps for them.
		if strings.Contains(stack, id) && !strings.Contains(stack, "\tos/signal.loop+") {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}

// Main is the TestMain of a package whose tests start compositions: it fails the package when a goroutine or a child
// process is left at the end. DSH_HOME is a directory of the package's own meanwhile.
func Main(m *testing.M) { testkit.Main(m) }
