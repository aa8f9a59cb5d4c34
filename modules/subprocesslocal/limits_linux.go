package subprocesslocal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"dsh/modules/subprocess"
)

// controllers switches on what holds commands to limits, at the first command that has one. The kernel hands a controller
// on only to cgroups whose own parent has no processes, so this process moves into a leaf of the tree then.
type controllers struct {
	tree tree

	mu    sync.Mutex
	on    []string
	moved bool
}

// period is what a share of the processors is counted in, in microseconds: the kernel's own default.
const period = 100_000

// settings returns, for each controller that l needs, what is written where.
func settings(l subprocess.Limits) map[string][2]string {
	all := map[string][2]string{}
	if l.MemoryMax > 0 {
		all["memory"] = [2]string{"memory.max", strconv.FormatInt(l.MemoryMax, 10)}
	}
	if l.PidsMax > 0 {
		all["pids"] = [2]string{"pids.max", strconv.FormatInt(l.PidsMax, 10)}
	}
	if l.CPUMax > 0 {
		quota := max(int64(l.CPUMax*period), 1000) // the least that the kernel takes
		all["cpu"] = [2]string{"cpu.max", fmt.Sprintf("%d %d", quota, period)}
	}
	return all
}

// enable makes the limits in l possible.
func (c *controllers) enable(l subprocess.Limits) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, name := range []string{"memory", "pids", "cpu"} {
		if _, needed := settings(l)[name]; needed && !slices.Contains(c.on, name) {
			if err := c.switchOn(name); err != nil {
				errs = append(errs, err)
				continue
			}
			c.on = append(c.on, name)
		}
	}
	return errors.Join(errs...)
}

// chain is the cgroups that hand a controller on, from the one above all of ours.
func (c *controllers) chain() []string {
	if c.tree.isScope() {
		return []string{c.tree.root, c.tree.cmds()}
	}
	return []string{filepath.Dir(c.tree.root), c.tree.root, c.tree.cmds()}
}

func (c *controllers) switchOn(name string) error {
	chain := c.chain()
	if !slices.Contains(words(chain[0], "cgroup.controllers"), name) {
		return fmt.Errorf("the controller %s is not to be had: %s", name, holder(name, chain[0]))
	}
	for _, dir := range chain {
		if slices.Contains(words(dir, "cgroup.subtree_control"), name) {
			continue
		}
		err := writeCgroup(dir, "cgroup.subtree_control", "+"+name)
		if errors.Is(err, unix.EBUSY) && dir == chain[0] && !c.moved {
			// 0 is who writes.
			if err := writeCgroup(c.tree.runtime(), "cgroup.procs", "0"); err != nil {
				return err
			}
			c.moved = true
			err = writeCgroup(dir, "cgroup.subtree_control", "+"+name)
		}
		if errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("the controller %s cannot be switched on: other processes than this one are in the cgroup %s: %v", name, dir, pidsIn(dir))
		}
		if err != nil {
			return fmt.Errorf("the controller %s cannot be switched on: %w", name, err)
		}
	}
	return nil
}

// leave takes this process out of the tree, which is about to be removed.
func (c *controllers) leave() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.moved {
		return nil
	}
	var errs []error
	chain := c.chain()
	for _, dir := range slices.Backward(chain) {
		for _, name := range c.on {
			errs = append(errs, writeCgroup(dir, "cgroup.subtree_control", "-"+name))
		}
	}
	c.on, c.moved = nil, false
	return errors.Join(append(errs, writeCgroup(chain[0], "cgroup.procs", "0"))...)
}

// limit writes the limits of a command, whose controllers are on.
func (r *cgroupRange) limit(l subprocess.Limits) error {
	for _, s := range settings(l) {
		if err := writeCgroup(r.dir, s[0], s[1]); err != nil {
			return err
		}
	}
	r.memory = l.MemoryMax > 0
	return nil
}

// oomKilled reports whether the kernel ended a member because the command was at its limit of memory.
func (r *cgroupRange) oomKilled() bool {
	if !r.memory {
		return false
	}
	events, err := os.ReadFile(filepath.Join(r.dir, "memory.events"))
	if err != nil {
		return false
	}
	return oomKills(string(events)) > 0
}

// oomKills returns how many processes the kernel ended for memory, of the text of memory.events as
// Documentation/admin-guide/cgroup-v2.rst has it: a name and a number in each line.
func oomKills(events string) int {
	for line := range strings.Lines(events) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
			kills, _ := strconv.Atoi(n)
			return kills
		}
	}
	return 0
}

// holder says who has a controller that a cgroup has not.
func holder(name, dir string) string {
	membership, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(membership)) {
		// 4:memory:/some/where, of a hierarchy of version 1
		f := strings.SplitN(line, ":", 3)
		if len(f) == 3 && f[0] != "0" && slices.Contains(strings.Split(f[1], ","), name) {
			return "it is bound to cgroup v1" + mountedV1(name)
		}
	}
	kernel, _ := os.ReadFile("/proc/cgroups")
	if !slices.ContainsFunc(strings.Split(string(kernel), "\n"), func(line string) bool {
		f := strings.Fields(line)
		return len(f) == 4 && f[0] == name && f[3] == "1"
	}) {
		return "this kernel has none, or it is switched off"
	}
	for up := filepath.Dir(dir); exists(filepath.Join(up, "cgroup.controllers")); up = filepath.Dir(up) {
		if slices.Contains(words(up, "cgroup.controllers"), name) {
			return fmt.Sprintf("the cgroup %s has it, and does not hand it on", up)
		}
	}
	return fmt.Sprintf("whoever made the cgroup %s did not delegate it", dir)
}

// mountedV1 says where a controller of version 1 is mounted.
func mountedV1(name string) string {
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		before, after, _ := strings.Cut(strings.TrimSpace(line), " - ")
		f, fs := strings.Fields(before), strings.Fields(after)
		if len(f) > 4 && len(fs) == 3 && fs[0] == "cgroup" && slices.Contains(strings.Split(fs[2], ","), name) {
			return ", mounted on " + unescape(f[4])
		}
	}
	return ""
}

// words returns what a file of a cgroup lists.
func words(dir, file string) []string {
	list, _ := os.ReadFile(filepath.Join(dir, file))
	return strings.Fields(string(list))
}
