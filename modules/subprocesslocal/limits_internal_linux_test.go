package subprocesslocal

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dsh/internal/testkit"
)

const controllerVariable = "TEST_CONTROLLER"

// TestControllerIsSwitchedOn has a host in a cgroup of its own, which hands nothing on while the host itself is in it.
func TestControllerIsSwitchedOn(t *testing.T) {
	if name := os.Getenv(controllerVariable); name != "" {
		switchOnHere(t, name)
		return
	}
	own, err := ownPlace()
	testkit.Need(t, "a cgroup of version 2", err == nil)
	list := words(own.dir, "cgroup.controllers")
	if len(list) == 0 || os.Geteuid() != 0 { // no fault of a machine, also not in CI: all may be bound to version 1
		t.Skip("this test needs a controller of cgroup version 2, and root")
	}
	name := list[0]
	if !slices.Contains(words(own.dir, "cgroup.subtree_control"), name) {
		err := writeCgroup(own.dir, "cgroup.subtree_control", "+"+name)
		if err != nil {
			t.Skipf("this test needs a cgroup that hands controllers on: %v", err)
		}
		t.Cleanup(func() {
			if err := writeCgroup(own.dir, "cgroup.subtree_control", "-"+name); err != nil {
				t.Error(err)
			}
		})
	}
	dir := filepath.Join(own.dir, "test-"+randomHex(8))
	if err := unix.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := removeCgroup(ctx, dir); err != nil {
			t.Error(err)
		}
	})
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), controllerVariable+"="+name)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd())}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
}

func switchOnHere(t *testing.T, name string) {
	at, err := ownPlace()
	if err != nil {
		t.Fatal(err)
	}
	host := tree{filepath.Join(at.dir, "dsh-test"), at.path + "/dsh-test"}
	if err := host.create(); err != nil {
		t.Fatal(err)
	}
	c := controllers{tree: host}
	if err := c.switchOn(name); err != nil {
		t.Error(err)
	}
	c.on = []string{name}
	command := filepath.Join(host.cmds(), "cmd-1")
	if err := unix.Mkdir(command, 0o755); err != nil {
		t.Error(err)
	}
	if got := words(command, "cgroup.controllers"); !slices.Contains(got, name) {
		t.Errorf("a command's cgroup has the controllers %q", got)
	}
	if moved, err := ownPlace(); err != nil || moved.dir != host.runtime() {
		t.Errorf("this process is in %s, %v", moved.dir, err)
	}
	if err := c.leave(); err != nil {
		t.Error(err)
	}
	if back, err := ownPlace(); err != nil || back != at {
		t.Errorf("this process is in %+v, %v, and was in %+v", back, err, at)
	}
	if err := host.remove(t.Context()); err != nil {
		t.Error(err)
	}
	if exists(host.root) {
		t.Error("the tree is left")
	}

	// Somebody else in the cgroup is not ours to move.
	cmd := exec.Command("sleep", "4310")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if err := host.create(); err != nil {
		t.Fatal(err)
	}
	c = controllers{tree: host}
	if err := c.switchOn(name); err == nil || !strings.Contains(err.Error(), "other processes than this one are in the cgroup "+at.dir) {
		t.Errorf("got %v", err)
	}
	if err := c.leave(); err != nil {
		t.Error(err)
	}
	if err := host.remove(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestControllerThatIsNotToBeHad asks for each; what this machine does not have in its v2 hierarchy it must say who has.
func TestControllerThatIsNotToBeHad(t *testing.T) {
	own, err := ownPlace()
	testkit.Need(t, "a cgroup of version 2", err == nil)
	for _, name := range []string{"memory", "pids", "cpu", "nonsense"} {
		if slices.Contains(words(own.dir, "cgroup.controllers"), name) {
			continue
		}
		c := controllers{tree: tree{root: filepath.Join(own.dir, "dsh-none")}}
		err := c.switchOn(name)
		want := "the controller " + name + " is not to be had: "
		mounted := "/sys/fs/cgroup/" + name
		if exists(filepath.Join(mounted, "cgroup.procs")) {
			want += "it is bound to cgroup v1, mounted on " + mounted
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestOutOfMemoryKillsAreCounted(t *testing.T) {
	for events, want := range map[string]int{
		"": 0,
		"low 0\nhigh 3\nmax 17\noom 0\noom_kill 0\noom_group_kill 0\n": 0,
		"low 0\nhigh 3\nmax 17\noom 4\noom_kill 2\noom_group_kill 0\n": 2,
		"low 0\nhigh 3\nmax 17\noom 4\noom_kill 12":                    12,
		"oom_group_kill 5\noom_kill_other 6\n":                         0,
		"low 0\noom_group_kill 1\noom_kill 1\nsock_throttled 0\n":      1,
	} {
		if got := oomKills(events); got != want {
			t.Errorf("%q: got %d, want %d", events, got, want)
		}
	}
}

// TestMembership has what /proc/self/cgroup may say.
func TestMembership(t *testing.T) {
	for name, c := range map[string]struct{ lines, want, err string }{
		"v2 alone":        {"0::/user.slice/a b\n", "/user.slice/a b", ""},
		"both":            {"5:cpu:/x\n1:name=systemd:/y\n0::/z\n", "/z", ""},
		"both, v2 empty":  {"5:cpu:/x\n0::/\n", "/", ""},
		"v1 alone":        {"5:cpu:/x\n1:name=systemd:/y\n", "", "the kernel has no cgroup v2 hierarchy"},
		"nothing":         {"", "", "the kernel has no cgroup v2 hierarchy"},
		"a removed one":   {"0::/gone (deleted)\n", "/gone", ""},
		"a misleading v1": {"10:0::/x:/y\n", "", "the kernel has no cgroup v2 hierarchy"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := v2Path(strings.NewReader(c.lines))
			if got != c.want || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
				t.Errorf("got %q, %v, want %q, %s", got, err, c.want, c.err)
			}
		})
	}
}

// TestPlaces has the ways in which a machine may have no cgroup of version 2 for us.
func TestPlaces(t *testing.T) {
	const v1 = "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
	for name, c := range map[string]struct{ mounts, path, want string }{
		"v1 alone":              {v1, "/", "no cgroup v2 hierarchy is mounted"},
		"nothing":               {"", "/", "no cgroup v2 hierarchy is mounted"},
		"another part":          {v1 + "41 31 0:38 /elsewhere /mnt/a\\040b rw - cgroup2 cgroup2 rw\n", "/here", "this process's cgroup /here is not below the one mounted on /mnt/a b"},
		"a name that begins so": {"41 31 0:38 /her /mnt rw - cgroup2 cgroup2 rw\n", "/here", "this process's cgroup /here is not below the one mounted on /mnt"},
		"above the namespace":   {"41 31 0:38 /../.. /mnt rw - cgroup2 cgroup2 rw\n", "/", "this process's cgroup / is not below the one mounted on /mnt"},
		"covered":               {"41 31 0:38 / /proc rw - cgroup2 cgroup2 rw\n", "/", "this process's cgroup is not at /proc"},
	} {
		t.Run(name, func(t *testing.T) {
			if at, err := placeIn([]byte(c.mounts), c.path); err == nil || err.Error() != c.want {
				t.Errorf("got %+v, %v, want %q", at, err, c.want)
			}
		})
	}
}
