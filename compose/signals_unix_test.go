//go:build unix

package compose

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"testing"
)

// The host below is this test binary: signals as the kernel delivers them, and an exit for good.
func TestSignalsOfARealProcess(t *testing.T) {
	if mode := os.Getenv("COMPOSE_TEST_HOST"); mode != "" {
		signalledHost(mode)
	}
	t.Parallel()
	for _, c := range []struct {
		name    string
		mode    string
		signals []syscall.Signal
		code    int
	}{
		{"terminated", "obey", []syscall.Signal{syscall.SIGTERM}, 143},
		{"interrupted", "obey", []syscall.Signal{syscall.SIGINT}, 130},
		{"hung up", "obey", []syscall.Signal{syscall.SIGHUP}, 129},
		{"interrupted while its stop hangs", "hang", []syscall.Signal{syscall.SIGTERM, syscall.SIGINT}, 130},
		{"hung up under nohup, then terminated", "nohup", []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM}, 143},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if slices.ContainsFunc(c.signals, func(s syscall.Signal) bool { return signal.Ignored(s) }) && c.mode != "nohup" {
				t.Skip("the test process was started with a signal ignored")
			}
			argv := []string{os.Args[0], "-test.run=^TestSignalsOfARealProcess$"}
			if c.mode == "nohup" {
				argv = append([]string{"nohup"}, argv...)
			}
			cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
			cmd.Env = append(os.Environ(), "COMPOSE_TEST_HOST="+c.mode)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { // for a test that fails half way
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}()
			line := make([]byte, 1)
			for _, s := range c.signals {
				if _, err := out.Read(line); err != nil { // the host is ready for the next
					t.Fatal(err)
				}
				if err := cmd.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
			}
			_ = cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != c.code {
				t.Errorf("exit code %d (%v), want %d", got, cmd.ProcessState, c.code)
			}
		})
	}
}

// signalledHost writes a byte whenever it is ready for a signal, and ends as a host does. With the mode hang, its stop
// does not come to an end; with nohup, the first signal of two does nothing.
func signalledHost(mode string) {
	ctx, _ := WatchSignals(context.Background(), os.Exit)
	fmt.Print(".")
	if mode == "nohup" {
		fmt.Print(".")
	}
	<-ctx.Done()
	if mode == "hang" {
		fmt.Print(".")
		select {}
	}
	e, _ := errors.AsType[*InterruptedError](context.Cause(ctx))
	os.Exit(e.ExitCode())
}
