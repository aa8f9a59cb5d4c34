package subprocesslocal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dsh/modules/subprocess"
)

// cgroups makes ranges that are a cgroup each, of the kind scope or cgroup. The group that it is made on waits for
// orphans, and ends at stop what has got out of its cgroup.
type cgroups struct {
	*group
	name   subprocess.RangeKind
	tree   tree
	watch  *watcher
	limits controllers
	last   atomic.Int64 // the number of the latest range

	// spare is a range for the next command, made while another runs: that takes a tenth of a short command's time. It
	// holds no descriptor.
	spare     chan *cgroupRange
	preparing atomic.Bool
	prepared  sync.WaitGroup
}

var _ ranges = (*cgroups)(nil)

func (g *cgroups) kind() subprocess.RangeKind { return g.name }

// start makes the tree and tries it: whether a process may be born in a cgroup, only the attempt tells.
func (g *cgroups) start() (err error) {
	defer func() {
		if err != nil {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			err = errors.Join(err, g.tree.remove(ctx))
		}
	}()
	if err := g.tree.create(); err != nil {
		return err
	}
	if g.watch, err = newWatcher(); err != nil {
		return err
	}
	if err = g.attempt(); err == nil {
		err = g.group.start()
	}
	if err != nil {
		g.watch.close()
	}
	return err
}

// attempt makes a range and has a process born in it, which ends before it is a program.
func (g *cgroups) attempt() error {
	r, err := g.newRange()
	if err != nil {
		return err
	}
	defer r.release()
	if err := r.open(); err != nil {
		return inCgroup(err)
	}
	return r.attempt()
}

func (g *cgroups) stop(ctx context.Context) error {
	err := killAll(g.tree.cmds())
	tick := time.NewTicker(look)
	defer tick.Stop()
	for populated, _ := events(g.tree.cmds()); populated && ctx.Err() == nil; populated, _ = events(g.tree.cmds()) {
		select {
		case <-tick.C:
			err = killAll(g.tree.cmds()) // moved in meanwhile
		case <-ctx.Done():
		}
	}
	g.prepared.Wait()
	select {
	case r := <-g.spare:
		r.release()
	default:
	}
	g.watch.close()
	return errors.Join(err, g.group.stop(ctx), g.limits.leave(), g.tree.remove(ctx))
}

// kill ends every command at one stroke, and then who is not in its cgroup any more.
func (g *cgroups) kill() {
	_ = killAll(g.tree.cmds())
	g.group.kill()
}

func (g *cgroups) allow(l subprocess.Limits) error { return g.limits.enable(l) }

func (g *cgroups) make(l subprocess.Limits) (managedRange, error) {
	g.guard.ready()
	if err := g.allow(l); err != nil {
		return nil, err
	}
	var r *cgroupRange
	select {
	case r = <-g.spare:
	default:
		var err error
		if r, err = g.newRange(); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(r.open(), r.limit(l)); err != nil {
		r.release()
		return nil, inCgroup(err)
	}
	if g.last.Load() > 2 { // many hosts run one command; the attempt had a range too
		r.forked = g.prepare
	}
	return r, nil
}

// prepare has the spare made if there is none.
func (g *cgroups) prepare() {
	if len(g.spare) > 0 || !g.preparing.CompareAndSwap(false, true) {
		return
	}
	g.prepared.Go(func() {
		defer g.preparing.Store(false)
		r, err := g.newRange()
		if err != nil {
			return // the next command will say so, if it is still true
		}
		select {
		case g.spare <- r:
		default:
			r.release()
		}
	})
}

func (g *cgroups) newRange() (*cgroupRange, error) {
	name := "cmd-" + strconv.FormatInt(g.last.Add(1), 10)
	r := &cgroupRange{
		leader: leader{pidfd: -1, kin: &kin{user: g.group, cookie: g.newCookie()}},
		dir:    filepath.Join(g.tree.cmds(), name), path: g.tree.path + "/cmds/" + name,
		fd: -1, termed: map[int]uint64{}, gone: make(chan struct{}), forked: func() {},
	}
	if err := r.create(g.watch); err != nil {
		r.release()
		return nil, inCgroup(err)
	}
	return r, nil
}

func inCgroup(err error) error { return fmt.Errorf("a cgroup for the command: %w", err) }

// cgroupRange is all that is in one command's cgroup and below it.
type cgroupRange struct {
	leader
	dir    string
	path   string // as /proc/PID/cgroup has it
	fd     int    // what the leader is to be born in, from open until it was; else -1
	end    func() // of the watch
	memory bool   // it is limited
	forked func() // called when the leader was started

	mu     sync.Mutex
	termed map[int]uint64 // who had TERM, by pid and start
	waited bool           // the leader was waited for
	over   bool           // gone is closed
	gone   chan struct{}
}

var _ managedRange = (*cgroupRange)(nil)

func (r *cgroupRange) create(w *watcher) error {
	born := filepath.Join(r.dir, "p")
	for _, dir := range []string{r.dir, born} {
		if err := unix.Mkdir(dir, 0o755); err != nil {
			return &fs.PathError{Op: "mkdir", Path: dir, Err: err}
		}
	}
	// Without the mark a host in this range makes a range outside of it. Kernels before 5.7 know no such attribute, and
	// nothing can be born in a cgroup there.
	if err := unix.Setxattr(born, rangeXattr, []byte("1"), 0); err != nil {
		return &fs.PathError{Op: "setxattr", Path: born, Err: err}
	}
	var err error
	r.end, err = w.add(r.dir, r.look)
	return err
}

// open opens what the leader is to be born in.
func (r *cgroupRange) open() error {
	born := filepath.Join(r.dir, "p")
	fd, err := unix.Open(born, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: born, Err: err}
	}
	r.fd = fd
	return nil
}

func (r *cgroupRange) fork(l *launch) error {
	err := r.start(l, &syscall.SysProcAttr{Setsid: true, UseCgroupFD: true, CgroupFD: r.fd})
	if err != nil {
		// The kernel says of a cgroup that it cannot use what it says of a program that may not be run.
		if refused := r.attempt(); refused != nil {
			return fmt.Errorf("start %s: %w", l.path, refused)
		}
		return err
	}
	unix.Close(r.fd)
	r.fd = -1
	r.forked()
	return nil
}

// refusedError is a cgroup in which the kernel lets no process be born. It is not the reason itself, which would be taken
// for the program's.
type refusedError struct {
	dir    string
	reason error
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("no process can be started in the cgroup %s: %v", e.dir, e.reason)
}

// attempt has a process born in the range that has no program to become: the kernel says so once the process is there.
func (r *cgroupRange) attempt() error {
	table.list.RLock()
	defer table.list.RUnlock()
	_, err := syscall.ForkExec("", []string{""}, &syscall.ProcAttr{
		Env: []string{}, Sys: &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: r.fd},
	})
	if errors.Is(err, syscall.ENOENT) {
		return nil
	}
	return &refusedError{filepath.Join(r.dir, "p"), err}
}

func (r *cgroupRange) wait() (syscall.WaitStatus, error) {
	status, err := r.leader.wait()
	r.mu.Lock()
	r.waited = true
	r.mu.Unlock()
	r.look()
	select {
	case <-r.gone:
	default:
		go r.hasten()
	}
	return status, err
}

// hasten looks often for as long as somebody waits to see whether the range becomes empty. The kernel tells of it as well,
// but not more than every 10 ms, and what a sandbox leaves is most often gone in less than one.
func (r *cgroupRange) hasten() {
	for pause := 100 * time.Microsecond; pause < closing; pause *= 2 {
		select {
		case <-r.gone:
			return
		case <-time.After(pause):
			r.look()
		}
	}
}

// look finds out whether a range whose leader is gone has become empty.
func (r *cgroupRange) look() {
	if populated, _ := events(r.dir); populated {
		return
	}
	// Who was in it last is an orphan: none that is dead should be left to be seen.
	table.survey()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.vacate()
}

// vacate declares the range empty if it is. The caller holds mu.
func (r *cgroupRange) vacate() {
	if !r.waited || r.over {
		return
	}
	if populated, _ := events(r.dir); !populated {
		r.over = true
		close(r.gone)
	}
}

// term reads the members anew each time: a command may have made cgroups below its own.
func (r *cgroupRange) term(spareLeader bool) {
	for _, pid := range r.pids() {
		if pid == 0 || spareLeader && table.leads(r.kin, pid) {
			continue
		}
		s, ok := readStat(proc(pid, "/stat"))
		if !ok {
			continue
		}
		r.mu.Lock()
		again := r.termed[pid] == s.start
		r.termed[pid] = s.start
		r.mu.Unlock()
		if !again {
			r.signal(pid, unix.SIGTERM, unix.SIGCONT)
		}
	}
}

// signal sends signals to a process if it is a member.
func (r *cgroupRange) signal(pid int, signals ...syscall.Signal) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	// Only now the pid is known to stay the same process's.
	at, err := cgroupPath(pid)
	if err != nil || at != r.path && !strings.HasPrefix(at, r.path+"/") {
		return
	}
	for _, sig := range signals {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
	}
}

// kill may fail only where the next one, shortly after, will.
func (r *cgroupRange) kill() { _ = killAll(r.dir) }

func (r *cgroupRange) idle() bool {
	for _, pid := range r.pids() {
		if pid > 0 && isBusy(pid) && !isNamespaceInit(pid) {
			return false
		}
	}
	return true
}

func (r *cgroupRange) count() int {
	n := 0
	for _, pid := range r.pids() {
		if pid == 0 || !isNamespaceInit(pid) {
			n++
		}
	}
	return n
}

func (r *cgroupRange) pids() []int { return pidsIn(commandCgroups(r.dir)...) }

func (r *cgroupRange) empty() <-chan struct{} { return r.gone }

// removal bounds how long the cgroup of an empty range is tried to be removed. What is left is the tree's to remove.
const removal = 2 * time.Second

func (r *cgroupRange) release() {
	if r.fd >= 0 {
		unix.Close(r.fd)
		r.fd = -1
	}
	if r.end != nil {
		r.end()
		r.end = nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), removal)
	defer cancel()
	_ = removeCgroup(ctx, r.dir)
}

// isBusy reports whether any thread of a process is running or waiting for a disk.
func isBusy(pid int) bool {
	for _, thread := range threads(pid) {
		if s, ok := readStat(proc(pid, "/task/"+thread+"/stat")); ok && s.busy() {
			return true
		}
	}
	return false
}

// leads reports whether a process is the leader of k, and was not waited for.
func (c *children) leads(k *kin, pid int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return k.leading && k.session == pid
}
