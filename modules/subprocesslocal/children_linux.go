package subprocesslocal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// cookieName is the variable that says whose an orphan is: the ids of the ranges that it is in, the outermost first.
const cookieName = "DSH_RANGE"

// table knows the children of this process. The kernel has one list of them, so there is one table, however many
// runtimes there are: none may wait for, or kill, what another owns.
var table = &children{
	known: map[int]*kin{}, sessions: map[int]*kin{}, cookies: map[string]*kin{}, strangers: map[int]uint64{},
	users: map[*group]struct{}{},
}

// children is which child of this process belongs to what command.
//
// An orphan is adopted before its parent can be waited for. So after a leader was waited for, all that came of it is
// below children of this process; and when the list shows no child that belongs to the command, there is nothing of it.
type children struct {
	// list is held for reading while a child is forked and entered, and for writing while the list of children is read
	// and the dead among them are waited for: a child that is not entered yet must not be taken for an orphan, and one
	// that is waited for meanwhile makes the kernel skip others.
	list sync.RWMutex

	// mu guards the fields below. While it is held no child is waited for, so a child's pid is its own.
	mu        sync.Mutex
	known     map[int]*kin    // leaders that were not waited for, and orphans whose owner is known
	sessions  map[int]*kin    // by the leader's pid
	cookies   map[string]*kin // by the whole cookie; every kin that is not empty
	strangers map[int]uint64  // orphans whose owner cannot be told, and when they started
	changed   []*kin          // who may be empty; judged when no orphan's owner is still to be found out

	users   map[*group]struct{} // runtimes that have started
	own     int                 // our session: what is in it was started by others in this process
	orphans *os.File            // the list of the main thread, to which the kernel gives orphans
	wake    chan os.Signal
	keeper  *sync.WaitGroup // of this time of being open: the next one may begin before the last one has ended
	restore bool            // we were no subreaper before
}

// kin is the processes of one command, as far as they are children of this process; what is below them is found when it
// is asked for. children.mu guards it.
type kin struct {
	user   *group
	cookie string
	empty  chan struct{} // closed when nothing is left; nil for a kin that is the leader alone, whose orphans are not sought
	aside  bool          // the leader is the host's own helper: no command's, and never a target

	session int              // the leader's pid
	leading bool             // the leader was not waited for
	roots   map[int]struct{} // orphans
	termed  map[int]uint64   // who had TERM, by pid and start
	seen    map[int]uint64   // members when last asked for, who may be orphans in a session of their own now
}

// join makes this process adopt orphans, and keeps the table for g.
func (c *children) join(g *group) error {
	c.list.Lock()
	defer c.list.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.users) == 0 {
		if err := c.open(); err != nil {
			return err
		}
	}
	c.users[g] = struct{}{}
	return nil
}

func (c *children) open() error {
	me := os.Getpid()
	orphans, err := os.Open(proc(me, "/task/"+strconv.Itoa(me)+"/children"))
	if err != nil {
		return fmt.Errorf("the kernel does not list children: %w", err)
	}
	var was int32
	unix.Syscall(unix.SYS_PRCTL, unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&was)), 0)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return errors.Join(fmt.Errorf("become a child subreaper: %w", err), orphans.Close())
	}
	c.orphans, c.restore = orphans, was == 0
	c.own, _ = unix.Getsid(0)
	c.wake = make(chan os.Signal, 1)
	signal.Notify(c.wake, syscall.SIGCHLD)
	wake := c.wake
	c.keeper = new(sync.WaitGroup)
	c.keeper.Go(func() {
		// It serves every runtime, not only the one that happens to be first.
		pprof.SetGoroutineLabels(context.Background())
		for range wake {
			if !c.survey() {
				time.Sleep(time.Millisecond)
			}
		}
	})
	return nil
}

// leave undoes join.
func (c *children) leave(g *group) error {
	c.list.Lock()
	c.mu.Lock()
	delete(c.users, g)
	if len(c.users) > 0 || c.wake == nil {
		c.mu.Unlock()
		c.list.Unlock()
		return nil
	}
	signal.Stop(c.wake)
	close(c.wake)
	c.wake = nil
	clear(c.strangers)
	err := c.orphans.Close()
	c.orphans = nil
	if c.restore {
		err = errors.Join(err, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0))
	}
	keeper := c.keeper
	c.mu.Unlock()
	c.list.Unlock()
	keeper.Wait()
	return err
}

// fork starts the leader of k.
func (c *children) fork(k *kin, l *launch, attr *syscall.SysProcAttr) error {
	return fork(l, attr, func(start func() (pid int, err error)) error {
		c.list.RLock()
		defer c.list.RUnlock()
		pid, err := start()
		if err != nil {
			return err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		k.session, k.leading = pid, true
		c.known[pid] = k
		if k.empty != nil {
			c.sessions[pid], c.cookies[k.cookie] = k, k
		}
		return nil
	})
}

// reap waits for the leader of k, which has ended, and finds out what is left. EAGAIN says that it has not ended.
func (c *children) reap(k *kin) (status syscall.WaitStatus, err error) {
	c.list.Lock()
	defer c.list.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	pid, err := wait4(k.session, &status, syscall.WNOHANG)
	if err == nil && pid == 0 {
		return 0, syscall.EAGAIN
	}
	delete(c.known, k.session)
	k.leading = false
	if k.empty != nil {
		c.changed = append(c.changed, k)
		c.look()
	}
	return status, err
}

// survey waits for dead orphans and finds out whose the others are. It returns false, and has the keeper make another, if
// it could not with each of them.
func (c *children) survey() (clear bool) {
	c.list.Lock()
	defer c.list.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.look()
}

// look is survey for who holds the locks.
func (c *children) look() (clear bool) {
	// What a dead orphan leaves is in a list that is read after it was waited for, so only then its kin may be judged.
	for again := true; again; {
		again, clear = false, true
		for _, pid := range c.adopted() {
			switch c.visit(pid) {
			case died:
				again = true
			case unclear:
				clear = false
			}
		}
	}
	if !clear {
		select {
		case c.wake <- syscall.SIGCHLD:
		default:
		}
		return false
	}
	for _, k := range c.changed {
		c.settle(k)
	}
	c.changed = nil
	return true
}

// adopted lists the children of the main thread.
func (c *children) adopted() []int {
	if c.orphans == nil {
		return nil
	}
	buf := make([]byte, 4096)
	for {
		n, err := c.orphans.ReadAt(buf, 0)
		if n < len(buf) || err != nil && n == 0 {
			return pids(buf[:n])
		}
		buf = make([]byte, 4*len(buf))
	}
}

// finding is what a visit found.
type finding int

const (
	lives   finding = iota // or it is for somebody else to wait for
	died                   // and was waited for
	unclear                // whose it is, at this moment
)

// visit deals with one child.
func (c *children) visit(pid int) finding {
	k, known := c.known[pid]
	if known && k.leading && k.session == pid {
		return lives // somebody waits for it
	}
	found := lives
	if !known {
		s, thread, ok := readProcess(pid)
		if !ok || s.session == c.own {
			return lives
		}
		var told bool
		switch k, told = c.owner(pid, thread, s); {
		case k != nil:
			c.known[pid] = k
			k.roots[pid] = struct{}{}
		case told:
			c.strangers[pid] = s.start
		default:
			found = unclear
		}
	}
	if got, err := wait4(pid, nil, syscall.WNOHANG); got != pid || err != nil {
		return found
	}
	delete(c.known, pid)
	delete(c.strangers, pid)
	if k != nil {
		delete(k.roots, pid)
		c.changed = append(c.changed, k)
	}
	return died
}

// owner returns the kin that an orphan belongs to, or nil; told is false if that is not to be told yet.
func (c *children) owner(pid int, thread string, s stat) (k *kin, told bool) {
	if len(c.cookies) == 0 {
		return nil, true
	}
	if k, ok := c.sessions[s.session]; ok {
		return k, true
	}
	for _, k := range c.cookies {
		if start, ok := k.seen[pid]; ok && start == s.start {
			return k, true
		}
	}
	if start, ok := c.strangers[pid]; ok && start == s.start || s.dead() {
		return nil, true
	}
	value, known := cookieOf(pid, thread)
	if !known {
		return nil, false
	}
	for {
		if k, ok := c.cookies[value]; ok {
			return k, true
		}
		// What runs in a nested host has that host's ids after ours.
		i := strings.LastIndexByte(value, ':')
		if i < 0 {
			return nil, true
		}
		value = value[:i]
	}
}

// settle declares k empty if it is.
func (c *children) settle(k *kin) {
	if k.leading || len(k.roots) > 0 || k.empty == nil || c.cookies[k.cookie] != k {
		return
	}
	delete(c.cookies, k.cookie)
	if c.sessions[k.session] == k {
		delete(c.sessions, k.session)
	}
	close(k.empty)
}

// everyone returns all children of this process that some range may have brought, whichever thread has them. The
// caller holds mu.
func (c *children) everyone() []int {
	var all []int
	me := os.Getpid()
	for _, thread := range threads(me) {
		for _, pid := range childrenOf(proc(me, "/task/"+thread+"/children")) {
			if k, known := c.known[pid]; known && k.aside {
				continue
			}
			if s, ok := readStat(proc(pid, "/stat")); ok && s.session != c.own {
				all = append(all, pid)
			}
		}
	}
	return all
}

func wait4(pid int, status *syscall.WaitStatus, options int) (int, error) {
	for {
		got, err := syscall.Wait4(pid, status, options, nil)
		if !errors.Is(err, syscall.EINTR) {
			return got, err
		}
	}
}
