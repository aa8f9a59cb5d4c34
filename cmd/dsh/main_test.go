package main

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"dsh/internal/testkit"
)

// programs are what the test binary is in scripts.
var programs = map[string]func(){"dsh": main}

func TestMain(m *testing.M) {
	testscript.Main(testkit.Checked{Tests: m}, programs)
}

// TestScripts runs the scripts in testdata: what a person types, and what comes of it.
func TestScripts(t *testing.T) {
	for _, program := range []string{"bash", "git", "python3", "setsid", "unshare"} {
		testkit.NeedProgram(t, program)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("DSH_HOME", filepath.Join(env.WorkDir, ".home"))
			env.Values[clock{}] = new(time.Time)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"clock":       startClock,
			"under":       under,
			"gone":        gone,
			"exec-status": execStatus,
		},
	})
}

type clock struct{}

// startClock is the command `clock`: time counts from here.
func startClock(ts *testscript.TestScript, neg bool, args []string) {
	*ts.Value(clock{}).(*time.Time) = time.Now()
}

// under is the command `under DURATION`: less than that has passed since clock.
func under(ts *testscript.TestScript, neg bool, args []string) {
	limit, err := time.ParseDuration(args[0])
	ts.Check(err)
	if took := time.Since(*ts.Value(clock{}).(*time.Time)); (took < limit) == neg {
		ts.Fatalf("took %v", took)
	}
}

// gone is the command `gone ARG...`: no process has exactly these arguments. Scripts give their processes arguments that
// nothing else has. With ! there must be one.
func gone(ts *testscript.TestScript, neg bool, args []string) {
	if found := len(testkit.Processes(args...)) > 0; found != neg {
		ts.Fatalf("processes %q: found %v", args, found)
	}
}

// execStatus is the command `exec-status N PROGRAM ARG...`: exec, and the exit status is N.
func execStatus(ts *testscript.TestScript, neg bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	status := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		status = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got := strconv.Itoa(status); got != args[0] {
		ts.Fatalf("exit status %s, want %s", got, args[0])
	}
}
