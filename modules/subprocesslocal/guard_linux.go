package subprocesslocal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// guard keeps a small process beside the host, which ends what the host leaves when it is gone without a stop: killed,
// panicked, out of memory. It blocks on a pipe of which the host has the only writing end, so the end of file says that
// the host is gone. A child that is being forked at that moment has the end as well, until its own program runs: so
// nothing comes after the end of file. Signals for the host's terminal and process group do not reach the guard.
//
// It guards as soon as it is forked: if the host is gone before the guard's program has begun, the end of file is there
// when it has.
type guard struct {
	log  *slog.Logger
	argv []string
	root string // of the tree of cgroups that it guards and is born in; empty: there is none

	first   chan struct{} // closed when a guard was started for the first time, or could not be
	unready sync.Once
	watcher sync.WaitGroup
	stopped context.Context // ends when no guard is wanted any more; its values and deadline mean nothing
	stop    context.CancelFunc

	read, null int   // what the guard is given
	open       []int // all that is open from start to end: this, the writing end, and what claims the tree
}

// newGuard returns a guard of all that has the id of this host in its cookie and, if root is not empty, of the tree of
// cgroups there.
func newGuard(id, root string, log *slog.Logger) *guard {
	g := &guard{log: log, root: root, first: make(chan struct{})}
	if root == "" {
		g.argv = []string{"sh", "-c", awaitEnd + endMarked, "dsh-guard", id}
		return g
	}
	t := tree{root: root}
	g.argv = []string{"sh", "-c", awaitEnd + endTree + endMarked, "dsh-guard", id, t.cmds(), t.runtime(), root, filepath.Dir(root)}
	return g
}

// start has a guard started, and another whenever it dies. It does not wait; ready does.
func (g *guard) start() error {
	if err := g.openAll(); err != nil {
		return errors.Join(fmt.Errorf("guard: %w", err), g.closeAll())
	}
	g.stopped, g.stop = context.WithCancel(context.Background())
	g.watcher.Go(g.watch)
	if g.root != "" {
		g.watcher.Go(func() {
			g.ready()
			if err := sweepTrees(g.stopped, filepath.Dir(g.root)); err != nil {
				g.log.Warn("cannot remove cgroups of ended hosts", "error", err)
			}
		})
	}
	return nil
}

func (g *guard) openAll() error {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	g.read, g.open = fds[0], fds[:]
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	g.null, g.open = null, append(g.open, null)
	if g.root == "" {
		return nil
	}
	claimed, err := claim(g.root)
	if err != nil {
		return err
	}
	g.open = append(g.open, claimed)
	return nil
}

func (g *guard) closeAll() error {
	var errs []error
	for _, fd := range g.open {
		errs = append(errs, unix.Close(fd))
	}
	g.open = nil
	return errors.Join(errs...)
}

// ready waits until there is a guard, or there cannot be one, which is logged.
func (g *guard) ready() { <-g.first }

// end ends the guard without its doing anything, and waits for that. Nothing that it guards may be left.
func (g *guard) end() error {
	g.stop()
	g.watcher.Wait()
	return g.closeAll()
}

// The pauses before another guard, where one cannot be started or does not last.
const (
	shortPause = 10 * time.Millisecond
	longPause  = 10 * time.Second
	lasting    = time.Second
)

func (g *guard) watch() {
	for pause := time.Duration(0); ; pause = min(max(2*pause, shortPause), longPause) {
		began := time.Now()
		err := g.live()
		if g.stopped.Err() != nil {
			return
		}
		if err != nil && pause == 0 {
			g.log.Warn("no guard: if this process is killed, its commands may go on", "error", err)
		}
		if time.Since(began) > lasting {
			pause = 0
		}
		again := time.NewTimer(pause)
		select {
		case <-again.C:
		case <-g.stopped.Done():
			again.Stop()
			return
		}
	}
}

// live starts a guard and waits for its end.
func (g *guard) live() error {
	l := &leader{pidfd: -1, kin: &kin{aside: true}}
	err := g.fork(l)
	g.unready.Do(func() { close(g.first) })
	if err != nil {
		return err
	}
	defer context.AfterFunc(g.stopped, func() { table.killLeader(l.kin) })()
	_, err = l.wait()
	return err
}

func (g *guard) fork(l *leader) error {
	attr := &syscall.SysProcAttr{Setsid: true}
	if g.root != "" {
		leaf := tree{root: g.root}.runtime()
		fd, err := unix.Open(leaf, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return &fs.PathError{Op: "open", Path: leaf, Err: err}
		}
		defer unix.Close(fd)
		attr.UseCgroupFD, attr.CgroupFD = true, fd
	}
	// It has no cookie: where this host is in a range itself, that range's guard lets this one finish.
	err := table.fork(l.kin, &launch{
		path: guardShell, argv: g.argv, dir: "/",
		env:      []string{"PATH=/usr/bin:/bin:" + os.Getenv("PATH")},
		files:    []uintptr{uintptr(g.read), uintptr(g.null), uintptr(g.null)},
		onThread: func() error { return nil },
		atFork:   keepAllDescriptors,
	}, attr)
	if err != nil {
		return err
	}
	// Not by fork, which would put it into the table of the thread that forked.
	if l.pidfd, err = unix.PidfdOpen(l.kin.session, 0); err != nil {
		l.pidfd = -1
	}
	return nil
}

// keepAllDescriptors gives the thread a table of descriptors of its own, in which there is none that a child would get.
// What this process itself inherited must not be held open by a guard. Before Linux 5.11 it may be.
//
// In that table is a copy of the pipe of every fork that is under way, which does not return before the copy is closed: so
// this must not wait any more for what such a fork holds, the list of children among it.
func keepAllDescriptors() {
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_UNSHARE|unix.CLOSE_RANGE_CLOEXEC)
}
