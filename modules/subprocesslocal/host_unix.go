//go:build unix

package subprocesslocal

import (
	"os"
	"os/signal"
	"syscall"
)

// PrepareHost makes this process a fit host of commands. It is for main, before anything is forked, and lasts; who embeds
// the runtime in a process of another kind leaves it.
//
//   - Descriptors that this process inherited are not passed on.
//   - Signals that it was started with ignored are not ignored in commands. They are taken here instead, for good, which
//     for TSTP, TTIN and TTOU means that the host is not stopped by its terminal.
//   - On Linux, an ordinary user's commands cannot read this process's memory, environment or descriptors. Root's can.
//
// What main wants to know of those signals it asks signal.Notify for as well. Whether one was ignored, signal.Ignored
// tells only before this call.
func PrepareHost() error {
	if err := keepDescriptors(); err != nil {
		return err
	}
	// What is ignored stays so through exec, what is handled does not. Of all others the Go runtime sees to that.
	signal.Notify(make(chan os.Signal, 1),
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGCONT)
	if err := defaultLibcSignals(); err != nil {
		return err
	}
	return seal()
}
