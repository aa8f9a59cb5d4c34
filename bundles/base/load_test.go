package base_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"dsh/bundles/base"
	"dsh/composetest"
	"dsh/internal/testkit"
	"dsh/modules/shell"
	"dsh/modules/tools"
)

// unconfinedCalls leaves the sandbox out of what is counted: other packages' tests make and remove directories of hosts in
// the machine's /tmp meanwhile, which bwrap has to mount over.
var unconfinedCalls = composetest.Set("sandbox-policy.mode=danger-full-access")

func call(ctx context.Context, t testing.TB, registry tools.Registry, command string) (shell.Result, error) {
	t.Helper()
	arguments, err := json.Marshal(map[string]any{"command": command, "description": "test"})
	if err != nil {
		return shell.Result{}, err
	}
	r := registry.Execute(ctx, tools.Execution{CallID: "test", Name: "bash", Arguments: arguments})
	if r.Error != nil {
		return shell.Result{}, r.Error
	}
	var result shell.Result
	return result, json.Unmarshal(r.Value, &result)
}

// each runs f for 0 ... n-1, 32 at a time.
func each(n int, f func(i int)) {
	var all sync.WaitGroup
	next := make(chan int)
	for range 32 {
		all.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
}

func TestCallsAtOnceDoNotMixUp(t *testing.T) {
	registry := composetest.Value[tools.Registry](t, composetest.Start(t, composetest.With(base.Bundle()), unconfinedCalls))
	each(320, func(i int) {
		r, err := call(t.Context(), t, registry, fmt.Sprintf("echo out %d; echo err %d >&2; exit %d", i, i, i%200))
		if err != nil {
			t.Error(err)
			return
		}
		got := fmt.Sprintf("%s%s%v", r.Stdout.Text, r.Stderr.Text, *r.ExitCode)
		if want := fmt.Sprintf("out %d\nerr %d\n%d", i, i, i%200); got != want {
			t.Errorf("call %d: got %q, want %q", i, got, want)
		}
	})
}

func TestTenThousandCallsLeaveNothing(t *testing.T) {
	running := composetest.Start(t, composetest.With(base.Bundle()), unconfinedCalls)
	registry := composetest.Value[tools.Registry](t, running)
	each(64, func(int) { _, _ = call(t.Context(), t, registry, "true") })
	// A command is in TREE/cmds/cmd-N/p.
	where, err := call(t.Context(), t, registry, `grep -o '^0::.*/dsh-[^/]*' /proc/self/cgroup | cut -c 4-`)
	if err != nil {
		t.Fatal(err)
	}
	tree := strings.TrimSpace(where.Stdout.Text)
	testkit.Need(t, "cgroups of version 2", tree != "")
	before := footprint(t, tree)
	each(10_000, func(i int) {
		ctx := t.Context()
		if rand.N(10) == 0 { // at a random stage of its life
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, rand.N(20*time.Millisecond))
			defer cancel()
		}
		if _, err := call(ctx, t, registry, "true"); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	})
	// What ended last is still being put away.
	var after resources
	testkit.Eventually(t, 10*time.Second, "as many descriptors, goroutines, children, files and cgroups as before", func() bool {
		after = footprint(t, tree)
		return after.within(before)
	})
	t.Logf("before %+v, after %+v", before, after)
}

// resources is what calls must not use up.
type resources struct{ descriptors, goroutines, children, files, cgroups int }

func (r resources) within(o resources) bool {
	// The Go runtime keeps a few goroutines and descriptors of its own; ten thousand calls that leak are far beyond it.
	return r.descriptors <= o.descriptors+8 && r.goroutines <= o.goroutines+16 && r.children <= o.children && r.files <= o.files && r.cgroups <= o.cgroups
}

func footprint(t testing.TB, tree string) resources {
	t.Helper()
	descriptors, err := os.ReadDir("/proc/self/fd")
	testkit.Need(t, "/proc/self/fd", err == nil)
	files := 0
	_ = filepath.WalkDir(os.Getenv("DSH_HOME"), func(string, os.DirEntry, error) error {
		files++
		return nil
	})
	return resources{len(descriptors), runtime.NumGoroutine(), len(testkit.Children()), files, testkit.Cgroups(tree)}
}
