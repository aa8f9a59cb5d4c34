package subprocesslocal_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"dsh/internal/testkit"
	"dsh/modules/subprocess"
	"dsh/modules/subprocesslocal"
)

// reapedVariable says that the test is the program that strace follows, and what kind of range it has.
const reapedVariable = "TEST_REAPED"

// TestNoSignalAfterTheReap follows a host's system calls while it is asked to end commands that have ended: their numbers may
// be others' by then.
func TestNoSignalAfterTheReap(t *testing.T) {
	if kind := os.Getenv(reapedVariable); kind != "" {
		endWhatHasEnded(t, subprocess.RangeKind(kind))
		return
	}
	testkit.NeedProgram(t, "strace")
	needCgroups(t)
	for _, kind := range []subprocess.RangeKind{subprocess.RangeCgroup, subprocess.RangeGroup} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			log := filepath.Join(t.TempDir(), "calls")
			cmd := exec.CommandContext(t.Context(), "strace", "-f", "-qq", "-o", log,
				"-e", "trace=kill,tkill,tgkill,pidfd_send_signal,rt_sigqueueinfo,rt_tgsigqueueinfo,readlinkat",
				os.Args[0], "-test.run", "^TestNoSignalAfterTheReap$")
			cmd.Env = append(os.Environ(), reapedVariable+"="+string(kind))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			text, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			alive, rest, ok := strings.Cut(string(text), "/mark/reaped")
			ended, _, ended2 := strings.Cut(rest, "/mark/end")
			if !ok || !ended2 {
				t.Fatalf("the marks are not there:\n%s", text)
			}
			if len(signals(alive)) == 0 {
				t.Errorf("a command that was alive got no signal:\n%s", alive)
			}
			if sent := signals(ended); len(sent) > 0 {
				t.Errorf("signals after the reap:\n%s", strings.Join(sent, ""))
			}
		})
	}
}

var sends = regexp.MustCompile(`\b(t?g?kill|pidfd_send_signal|rt_(tg)?sigqueueinfo)\(`)

// signals returns the calls that send one, but for those by which the Go runtime preempts its own threads.
func signals(calls string) (sent []string) {
	for line := range strings.Lines(calls) {
		if sends.MatchString(line) && !strings.Contains(line, "SIGURG") {
			sent = append(sent, line)
		}
	}
	return sent
}

func endWhatHasEnded(t *testing.T, kind subprocess.RangeKind) {
	res, err := subprocesslocal.New(subprocesslocal.Params{Config: pinned(kind), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Runner.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	start := func(argv ...string) subprocess.Process {
		p, err := res.Runtime.Spawn(ctx, collected(argv))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	await := func(p subprocess.Process) {
		<-p.Done()
		if err := p.Quiesce(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	alive := start("sleep", "30601")
	alive.Terminate()
	await(alive)
	var reaped []subprocess.Process
	for range 5 {
		p := start("true")
		await(p)
		reaped = append(reaped, p)
	}
	_, _ = os.Readlink("/mark/reaped")
	alive.Terminate()
	for _, p := range reaped {
		p.Terminate()
	}
	cancel()
	time.Sleep(100 * time.Millisecond)
	_, _ = os.Readlink("/mark/end")
	if err := res.Runner.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}
