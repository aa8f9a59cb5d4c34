//go:build unix

package subprocesstest

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"dsh/modules/subprocess"

	"golang.org/x/sys/unix"
)

// ownGroup makes a process the leader of a group. It stays in the host's session, by which a real runtime in the same
// test knows that the process is not one of its orphans.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// groupGone reports whether nobody of a group is left. The dead do not count: some systems are slow to wait for orphans.
func groupGone(leader int) bool {
	if errors.Is(syscall.Kill(-leader, 0), syscall.ESRCH) {
		return true
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, _ := os.ReadFile(path)
		_, rest, _ := strings.Cut(string(stat), ") ")
		if f := strings.Fields(rest); len(f) > 2 && f[2] == strconv.Itoa(leader) && f[0] != "Z" {
			return false
		}
	}
	return len(stats) > 0
}

func signalGroup(leader *os.Process, kill bool) {
	if kill {
		_ = syscall.Kill(-leader.Pid, syscall.SIGKILL)
		return
	}
	_ = syscall.Kill(-leader.Pid, syscall.SIGTERM)
	_ = syscall.Kill(-leader.Pid, syscall.SIGCONT) // a stopped process acts on TERM only then
}

func outcome(state *os.ProcessState) subprocess.Outcome {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return subprocess.Outcome{ExitCode: -1, Signal: unix.SignalName(status.Signal())}
	}
	return subprocess.Outcome{ExitCode: state.ExitCode()}
}
