// Package testkit is what tests share: a TestMain that fails a package which leaves goroutines or processes behind, and
// waiting for a condition.
package testkit

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Main runs a package's tests, and fails the package if a goroutine or a child process is left at the end.
func Main(m *testing.M) { os.Exit(Checked{m}.Run()) }

// Checked runs tests as Main does, for a package that needs a main of its own. DSH_HOME is a directory of their own, so
// that what tests leave there is seen by none but them.
type Checked struct{ Tests interface{ Run() int } }

// Run returns the exit status.
func (c Checked) Run() int {
	if home := os.Getenv(homeName); home == "" || home != os.Getenv("DSH_HOME") {
		remove, err := ownHome()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer remove()
	}
	if code := c.Tests.Run(); code != 0 {
		return code
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	deadline := time.Now().Add(2 * time.Second)
	left := children()
	for len(left) > 0 && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
		left = children()
	}
	if len(left) > 0 {
		fmt.Fprintf(os.Stderr, "processes left behind:\n%s\n", strings.Join(left, "\n"))
		return 1
	}
	return 0
}

// homeName says which DSH_HOME a test made, so that a test binary that runs itself again, perhaps to be killed, shares it
// with the one that removes it.
const homeName = "DSH_TEST_HOME"

func ownHome() (remove func(), err error) {
	home, err := os.MkdirTemp("", "dsh-test-home-")
	if err != nil {
		return nil, err
	}
	remove = func() { os.RemoveAll(home) }
	return remove, errors.Join(os.Setenv("DSH_HOME", home), os.Setenv(homeName, home))
}

// Eventually waits until condition holds, and fails the test after within.
func Eventually(t testing.TB, within time.Duration, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(within)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("after %v still not: %s", within, what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// Need skips the test when a real part that it is about is absent, and says which. On a machine that must have every part
// (the variable CI is set) it fails the test instead.
func Need(t testing.TB, part string, present bool) {
	t.Helper()
	if present {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("this test needs %s", part)
	}
	t.Skipf("this test needs %s", part)
}

// NeedProgram is Need for a program on PATH. It returns the program's path.
func NeedProgram(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	Need(t, name, err == nil)
	return path
}

// Cgroups returns how many cgroups of version 2 there are below path, which is as /proc/PID/cgroup has it; 0 on platforms
// without them.
func Cgroups(path string) int { return cgroups(path) }

// Children returns a line for each child of this process, with its pid and its arguments, zombies included; nothing on
// platforms without /proc.
func Children() []string { return children() }
