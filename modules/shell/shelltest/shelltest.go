package shelltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dsh/internal/testkit"
	"dsh/modules/shell"
)

// Options says what an executor cannot do by its nature, or can do beyond the contract.
type Options struct {
	// Dir makes a directory that commands may write to; nil: the test's own temporary directory.
	Dir func(testing.TB) string
	// Ranges says that the runtime also holds processes that left the command's session.
	Ranges bool
	// StatusOfSignals says that a runner around the shell reports death by signal n as exit code 128+n.
	StatusOfSignals bool
}

// Run checks the executors that newExecutor makes, one for each check. Their grace is to be 1.5 seconds or somewhat more, and what
// they leave running is to be ended by the clean-up of the test.
func Run(t *testing.T, newExecutor func(testing.TB) shell.Executor, o Options) {
	t.Helper()
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(&suite{TB: t, Executor: newExecutor(t), o: o})
		})
	}
}

type check struct {
	name string // what goes wrong
	run  func(s *suite)
}

func checks() []check {
	return slices.Concat(resolveChecks, endChecks, outputChecks, inputChecks, backgroundChecks)
}

// suite is one check's executor with the means to say what is wrong with it.
type suite struct {
	testing.TB
	shell.Executor
	o Options
}

// patience is how long anything may take that takes no time on an idle machine.
const patience = 20 * time.Second

func (s *suite) dir() string {
	s.Helper()
	if s.o.Dir != nil {
		return s.o.Dir(s.TB)
	}
	return s.TempDir()
}

func (s *suite) resolve(r shell.Request) shell.Spec {
	s.Helper()
	if r.Workdir == "" {
		r.Workdir = s.dir()
	}
	spec, err := s.Resolve(r)
	if err != nil {
		s.Fatalf("Resolve: %v", err)
	}
	return spec
}

func (s *suite) runSpec(ctx context.Context, spec shell.Spec) shell.Result {
	s.Helper()
	r, err := s.Run(ctx, spec)
	if err != nil {
		s.Fatalf("Run %q: %v", abbreviated(spec.Command), err)
	}
	if r.TimedOut && r.Aborted {
		s.Errorf("%q timed out and was aborted, want one of them", abbreviated(spec.Command))
	}
	return r
}

// runs resolves and runs r with a live context of its own.
func (s *suite) runs(r shell.Request) shell.Result {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	return s.runSpec(ctx, s.resolve(r))
}

func (s *suite) starts(r shell.Request) shell.Process {
	s.Helper()
	p, err := s.Start(s.Context(), s.resolve(r))
	if err != nil {
		s.Fatalf("Start %q: %v", abbreviated(r.Command), err)
	}
	return p
}

func (s *suite) wantExit(r shell.Result, code int) {
	s.Helper()
	if r.ExitCode == nil || *r.ExitCode != code || r.Signal != nil {
		s.Errorf("%s, want exit code %d", ending(r.ExitCode, r.Signal), code)
	}
}

func (s *suite) wantUnended(r shell.Result) {
	s.Helper()
	if r.TimedOut || r.Aborted {
		s.Errorf("timedOut %v, aborted %v, but nobody ended the command", r.TimedOut, r.Aborted)
	}
}

func (s *suite) wantTimedOut(r shell.Result) {
	s.Helper()
	if !r.TimedOut || r.Aborted {
		s.Errorf("timedOut %v, aborted %v, want a timeout", r.TimedOut, r.Aborted)
	}
}

func (s *suite) wantAborted(r shell.Result) {
	s.Helper()
	if !r.Aborted || r.TimedOut {
		s.Errorf("timedOut %v, aborted %v, want an abort", r.TimedOut, r.Aborted)
	}
}

// wantSignal checks for an end by a signal.
func (s *suite) wantSignal(code *int, signal *string, name string, number int) {
	s.Helper()
	if code == nil && signal != nil && *signal == name {
		return
	}
	if s.o.StatusOfSignals && signal == nil && code != nil && *code == 128+number {
		return
	}
	s.Errorf("%s, want %s", ending(code, signal), name)
}

func ending(code *int, signal *string) string {
	switch {
	case code != nil && signal != nil:
		return fmt.Sprintf("exit code %d and signal %s", *code, *signal)
	case code != nil:
		return fmt.Sprintf("exit code %d", *code)
	case signal != nil:
		return "signal " + *signal
	}
	return "neither exit code nor signal"
}

func (s *suite) wantText(what, got, want string) {
	s.Helper()
	if got != want {
		s.Errorf("%s is %q, want %q", what, abbreviated(got), abbreviated(want))
	}
}

func (s *suite) eventually(what string, condition func() bool) {
	s.Helper()
	testkit.Eventually(s.TB, patience, what, condition)
}

// settles waits for a started command.
func (s *suite) settles(p shell.Process) shell.Status {
	s.Helper()
	select {
	case <-p.Done():
	case <-time.After(patience):
		s.Fatalf("after %v the command has not settled", patience)
	}
	return p.Status()
}

func (s *suite) exists(path string) bool {
	s.Helper()
	_, err := os.Lstat(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.Fatal(err)
	}
	return err == nil
}

func (s *suite) create(path string) {
	s.Helper()
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		s.Fatal(err)
	}
}

// wantSpill checks that a file with the whole stream, where there is one, is exact.
func (s *suite) wantSpill(path string, want []byte) {
	s.Helper()
	if path == "" {
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		s.Errorf("the spill file: %v", err)
	} else if !bytes.Equal(got, want) {
		s.Errorf("the spill file has %d bytes that are not the %d of the stream", len(got), len(want))
	}
}

// sleeper returns a command that sleeps for more than an hour and is like no other.
func sleeper() string { return fmt.Sprintf("sleep 4100.%018d", rand.Int64N(1e18)) }

// alive reports whether a process with this command line is there.
func (s *suite) alive(commandLine string) bool {
	s.Helper()
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		argv, _ := os.ReadFile(file) // gone, if it cannot be read
		if strings.TrimRight(strings.ReplaceAll(string(argv), "\x00", " "), " ") == commandLine {
			return true
		}
	}
	if len(files) > 0 {
		return false
	}
	all, err := exec.CommandContext(s.Context(), "ps", "-A", "-o", "args=").Output()
	if err != nil {
		s.Fatal(err)
	}
	return slices.Contains(strings.Split(string(all), "\n"), commandLine)
}

func abbreviated(text string) string {
	const most = 120
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s... (%d bytes)", text[:most], len(text))
}

func pointer[T any](v T) *T { return &v }
