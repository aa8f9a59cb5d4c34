package subprocesslocal

import (
	"errors"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// member is a process of a range that was alive when it was looked at.
type member struct {
	pid int
	stat
}

// walk returns roots and all that is below them, parents first. A process may be missed whose parent ends meanwhile; it
// is an orphan then and among the roots of the next walk. eachThread, if not nil, is given the state of every thread.
func walk(roots []int, eachThread func(pid int, s stat)) []member {
	var found []member
	visited := map[int]struct{}{}
	for queue := slices.Clone(roots); len(queue) > 0; queue = queue[1:] {
		pid := queue[0]
		if _, again := visited[pid]; again {
			continue
		}
		visited[pid] = struct{}{}
		s, _, ok := readProcess(pid)
		if !ok || s.dead() {
			continue
		}
		found = append(found, member{pid, s})
		for _, thread := range threads(pid) {
			task := proc(pid, "/task/"+thread)
			if eachThread != nil {
				if s, ok := readStat(task + "/stat"); ok {
					eachThread(pid, s)
				}
			}
			queue = append(queue, childrenOf(task+"/children")...)
		}
	}
	return found
}

// rootsOf returns the children of this process that belong to k, as they are at this moment.
func (c *children) rootsOf(k *kin) []int {
	c.survey()
	c.mu.Lock()
	defer c.mu.Unlock()
	return k.children()
}

// rootsToKill is rootsOf for who must not wait for a fork, which may be hanging on a dead file system. It may miss the
// latest orphans.
func (c *children) rootsToKill(k *kin) []int {
	if c.list.TryLock() {
		c.list.Unlock()
		return c.rootsOf(k)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return k.children()
}

func (k *kin) children() []int {
	var pids []int
	if k.leading {
		pids = append(pids, k.session)
	}
	for pid := range k.roots {
		pids = append(pids, pid)
	}
	return pids
}

// members returns the processes of k that are alive, and remembers them.
func (c *children) members(k *kin, roots []int) []member {
	members := walk(roots, nil)
	seen := make(map[int]uint64, len(members))
	for _, m := range members {
		seen[m.pid] = m.start
	}
	c.mu.Lock()
	k.seen = seen
	c.mu.Unlock()
	return members
}

// killLeader ends the session's first process group at one stroke, which no fork escapes. Before the leader was waited
// for, its pid is nobody else's.
func (c *children) killLeader(k *kin) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.leading {
		syscall.Kill(-k.session, syscall.SIGKILL)
	}
}

// targets returns the children of this process that g has to end: its own, and those whose owner cannot be told if no
// other runtime may be it.
func (c *children) targets(g *group) []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, started := c.users[g]; !started {
		return nil
	}
	if len(c.users) == 1 {
		return c.everyone()
	}
	var pids []int
	for _, k := range c.cookies {
		if k.user == g {
			pids = append(pids, k.children()...)
		}
	}
	return pids
}

// remains waits for what is dead and returns how many children g still has to end.
func (c *children) remains(g *group) int {
	c.list.Lock()
	defer c.list.Unlock()
	left := 0
	for _, pid := range c.targets(g) {
		c.mu.Lock()
		if c.visit(pid) == died {
			c.look()
		}
		c.mu.Unlock()
		left++ // also for the dead, who may have left others
	}
	return left
}

// signal sends signals to m, and to nobody who has got its pid since.
func (m member) signal(signals ...syscall.Signal) {
	fd, err := unix.PidfdOpen(m.pid, 0)
	if errors.Is(err, unix.ENOSYS) {
		fd = -1
	} else if err != nil {
		return
	} else {
		defer unix.Close(fd)
	}
	if s, ok := readStat(proc(m.pid, "/stat")); !ok || s.start != m.start {
		return
	}
	for _, sig := range signals {
		if fd < 0 {
			syscall.Kill(m.pid, sig)
		} else {
			unix.PidfdSendSignal(fd, sig, nil, 0)
		}
	}
}

// kill ends m and its process group. No process from outside of a range can be in a group of one, as it would have to be
// of the same session.
func (m member) kill() {
	if s, ok := readStat(proc(m.pid, "/stat")); ok && s.start == m.start && s.group > 1 && s.session > 1 {
		syscall.Kill(-s.group, syscall.SIGKILL)
	}
	m.signal(syscall.SIGKILL)
}

// withCookie returns env with the cookie in place of any other.
func withCookie(env []string, cookie string) []string {
	env = slices.DeleteFunc(env, func(entry string) bool { return strings.HasPrefix(entry, cookieName+"=") })
	return append(env, cookieName+"="+cookie)
}
