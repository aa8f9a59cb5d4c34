//go:build !unix

package subprocesstest

import (
	"os"
	"syscall"

	"dsh/modules/subprocess"
)

// Without process groups, the leader alone is owned.

func ownGroup() *syscall.SysProcAttr { return nil }

func groupGone(int) bool { return true }

func signalGroup(leader *os.Process, _ bool) { _ = leader.Kill() }

func outcome(state *os.ProcessState) subprocess.Outcome {
	return subprocess.Outcome{ExitCode: state.ExitCode()}
}
