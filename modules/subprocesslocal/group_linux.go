package subprocesslocal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dsh/modules/subprocess"
)

// group makes ranges of the kind group.
type group struct {
	cookie string // what the cookies of this host's commands begin with
	guard  *guard

	endGuard func() error // at the first call
}

var _ ranges = (*group)(nil)

// newGroup returns a group for the host with this id, which may itself be in a range. root is the tree of cgroups that its
// commands are in; empty where they are in none.
func newGroup(id, root string, log *slog.Logger) *group {
	cookie := id
	if outer := os.Getenv(cookieName); outer != "" {
		cookie = outer + ":" + id
	}
	guard := newGuard(id, root, log)
	return &group{cookie: cookie, guard: guard, endGuard: sync.OnceValue(guard.end)}
}

// newCookie returns a cookie for one command.
func (g *group) newCookie() string { return g.cookie + ":" + randomHex(8) }

func (g *group) kind() subprocess.RangeKind { return subprocess.RangeGroup }

func (g *group) start() error {
	if err := table.join(g); err != nil {
		return err
	}
	if err := g.guard.start(); err != nil {
		return errors.Join(err, table.leave(g))
	}
	return nil
}

// stop ends what no command is answerable for any more: orphans whose owner cannot be told.
func (g *group) stop(ctx context.Context) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		left := table.remains(g)
		if left == 0 {
			return errors.Join(g.endGuard(), table.leave(g))
		}
		g.kill()
		select {
		case <-tick.C:
		case <-ctx.Done():
			// The guard stays: when this process ends, it goes on.
			return errors.Join(fmt.Errorf("%d processes do not end: %w", left, context.Cause(ctx)), table.leave(g))
		}
	}
}

func (g *group) kill() {
	// Who is killed starts nobody, but may have done so while the others were looked for. The rounds are bounded, as this
	// is also for a host that must end at once.
	killed := map[int]uint64{}
	for range 50 {
		fresh := false
		for _, m := range walk(table.targets(g), nil) {
			if killed[m.pid] != m.start {
				killed[m.pid] = m.start
				fresh = true
				m.kill()
			}
		}
		if !fresh {
			return
		}
	}
}

func (g *group) allow(l subprocess.Limits) error {
	if l != (subprocess.Limits{}) {
		return errors.New("commands can be limited only in cgroups of their own, and ranges are process groups here")
	}
	return nil
}

func (g *group) make(l subprocess.Limits) (managedRange, error) {
	if err := g.allow(l); err != nil {
		return nil, err
	}
	g.guard.ready()
	return &groupRange{leader{pidfd: -1, kin: &kin{
		user: g, cookie: g.newCookie(), empty: make(chan struct{}), roots: map[int]struct{}{}, termed: map[int]uint64{},
	}}}, nil
}

// groupRange is one command's session and its orphans.
type groupRange struct{ leader }

var _ managedRange = (*groupRange)(nil)

func (r *groupRange) fork(l *launch) error { return r.start(l, &syscall.SysProcAttr{Setsid: true}) }

func (r *groupRange) release()        {}
func (r *groupRange) oomKilled() bool { return false }

// leader is the first process of a range.
type leader struct {
	kin   *kin
	pidfd int // -1 where the kernel has none
}

// start forks the leader.
func (r *leader) start(l *launch, attr *syscall.SysProcAttr) error {
	l.env = withCookie(l.env, r.kin.cookie)
	attr.PidFD = &r.pidfd
	return table.fork(r.kin, l, attr)
}

func (r *leader) wait() (syscall.WaitStatus, error) {
	if err := waitReadable(r.pidfd); err != nil {
		// Without a pidfd a thread has to wait. The status is left for reap.
		for {
			err := unix.Waitid(unix.P_PID, r.kin.session, nil, unix.WEXITED|unix.WNOWAIT, nil)
			if !errors.Is(err, unix.EINTR) {
				break
			}
		}
	}
	for {
		status, err := table.reap(r.kin)
		if !errors.Is(err, syscall.EAGAIN) {
			return status, err
		}
		time.Sleep(time.Millisecond) // a tracer has it
	}
}

// waitReadable waits until the process of a pidfd has ended, and closes the pidfd.
func waitReadable(pidfd int) error {
	if pidfd < 0 {
		return errors.ErrUnsupported
	}
	unix.SetNonblock(pidfd, true)
	f := os.NewFile(uintptr(pidfd), "pidfd")
	defer f.Close()
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	return conn.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0 && err == nil
	})
}

func (r *groupRange) term(spareLeader bool) {
	members := table.members(r.kin, table.rootsOf(r.kin))
	table.mu.Lock()
	fresh := members[:0]
	for _, m := range members {
		if r.kin.termed[m.pid] != m.start && !(spareLeader && m.pid == r.kin.session) {
			r.kin.termed[m.pid] = m.start
			fresh = append(fresh, m)
		}
	}
	table.mu.Unlock()
	for _, m := range fresh {
		m.signal(unix.SIGTERM, unix.SIGCONT)
	}
}

func (r *groupRange) kill() {
	table.killLeader(r.kin)
	for _, m := range table.members(r.kin, table.rootsToKill(r.kin)) {
		m.kill()
	}
}

func (r *groupRange) idle() bool {
	busy := false
	walk(table.rootsOf(r.kin), func(pid int, s stat) { busy = busy || s.busy() && !isNamespaceInit(pid) })
	return !busy
}

func (r *groupRange) count() int {
	n := 0
	for _, m := range table.members(r.kin, table.rootsOf(r.kin)) {
		if !isNamespaceInit(m.pid) {
			n++
		}
	}
	return n
}

func (r *groupRange) empty() <-chan struct{} { return r.kin.empty }
