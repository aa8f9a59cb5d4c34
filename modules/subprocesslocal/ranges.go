//go:build unix

package subprocesslocal

import (
	"context"
	"syscall"

	"dsh/modules/subprocess"
)

// ranges makes ranges of one kind and ends what is left of them. Its methods may be called concurrently.
type ranges interface {
	kind() subprocess.RangeKind
	// start takes what ranges of the kind need from the host; stop, after it, ends every process that came of any
	// range, and gives that back.
	start() error
	stop(context.Context) error
	// kill sends KILL to all that came of any range. It does not wait.
	kill()
	// allow makes limits possible, or says why they are not.
	allow(subprocess.Limits) error
	// make returns a range for one command.
	make(subprocess.Limits) (managedRange, error)
}

// choosing is ranges of one of several kinds, start's choice.
type choosing interface {
	ranges
	// report says what start found; nil before.
	report() []subprocess.RangeVerdict
}

// managedRange is all processes of one command. Its methods may be called concurrently, once fork has returned.
type managedRange interface {
	// fork starts the leader inside the range. After an error the range is of no more use.
	fork(*launch) error
	// wait returns how the leader ended. It is called once.
	wait() (syscall.WaitStatus, error)
	// term sends TERM, and CONT for the stopped, to each member that has not had it; spareLeader excepts the leader.
	term(spareLeader bool)
	// kill sends KILL to every member.
	kill()
	// idle reports that no member is running or waiting for a disk.
	idle() bool
	// count returns the number of members.
	count() int
	// empty is closed when the leader was waited for and no member is left, which is for good.
	empty() <-chan struct{}
	// oomKilled reports whether the kernel ended a member because of the command's limit of memory.
	oomKilled() bool
	// release gives back what an empty range, or one that was never forked in, has of the host's.
	release()
}

// launch is what fork(2) and execve(2) are given.
type launch struct {
	path     string
	argv     []string
	env      []string
	dir      string
	files    []uintptr
	onThread func() error // on a thread of its own, before all else
	atFork   func()       // the last thing before the fork
}
