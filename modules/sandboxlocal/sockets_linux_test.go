package sandboxlocal_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"dsh/internal/testkit"
	"dsh/modules/sandbox"
	"dsh/modules/sandboxlocal"
)

// listen opens a server that somebody outside of the sandbox runs.
func listen(t testing.TB, network, address string) {
	t.Helper()
	switch network {
	case "unix":
		l, err := net.Listen(network, address)
		must(t, err)
		t.Cleanup(func() { l.Close() })
	case "unixgram":
		c, err := net.ListenPacket(network, address)
		must(t, err)
		t.Cleanup(func() { c.Close() })
	}
}

// python is the interpreter itself: what PATH finds may be a script that looks for it.
var python = sync.OnceValue(func() string {
	path, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		return "python3"
	}
	return strings.TrimSpace(string(path))
})

// connect is a command that tries to reach servers and prints which it reached. It fails if it reached none.
func connect(addresses ...string) string {
	words := make([]string, len(addresses))
	for i, a := range addresses {
		words[i] = quote(a)
	}
	return python() + ` -c '
import socket, sys
reached = 1
for address in sys.argv[1:]:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            socket.socket(socket.AF_UNIX, kind).connect(address.replace("@", "\0"))
            print("reached", address)
            reached = 0
        except OSError:
            pass
sys.exit(reached)' ` + strings.Join(words, " ")
}

func TestNoServerOutsideObeys(t *testing.T) {
	t.Parallel()
	w := pinned(t, sandboxlocal.BackendBwrap)
	testkit.NeedProgram(t, "python3")
	must(t, os.MkdirAll(filepath.Join(w.ws, "deep/down"), 0o700))
	must(t, os.Symlink(w.outside, filepath.Join(w.ws, "link")))
	short, err := os.MkdirTemp("/tmp", "dsh-test-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(short) })
	servers := [][2]string{
		{"unix", filepath.Join(w.outside, "docker.sock")},
		{"unix", filepath.Join(w.outside, "with space.sock")},
		{"unixgram", filepath.Join(w.outside, "notify")},
		{"unix", filepath.Join(short, "agent.1")},
		{"unix", filepath.Join(w.ws, "docker.sock")},
		{"unix", filepath.Join(w.ws, "deep/down/docker.sock")},
		{"unix", filepath.Join(w.ws, "link/linked.sock")},
		{"unix", "@dsh-test-" + filepath.Base(filepath.Dir(w.ws))},
	}
	if root() {
		must(t, os.Mkdir("/run/dsh-test-"+itoa(os.Getpid()), 0o700))
		t.Cleanup(func() { os.RemoveAll("/run/dsh-test-" + itoa(os.Getpid())) })
		servers = append(servers, [2]string{"unix", "/run/dsh-test-" + itoa(os.Getpid()) + "/private"})
	}
	for _, s := range servers {
		listen(t, s[0], s[1])
	}
	addresses := make([]string, len(servers))
	for i, s := range servers {
		addresses[i] = s[1]
	}
	all, err := exec.Command("bash", "-c", connect(addresses...)).Output()
	if n := strings.Count(string(all), "reached"); err != nil || n != len(servers) {
		t.Fatalf("without a sandbox %d of %d are reached: %v, %s", n, len(servers), err, all)
	}
	for _, mode := range []sandbox.Mode{sandbox.ReadOnly, sandbox.WorkspaceWrite} {
		if o := w.with(mode).run(t, connect(addresses...)); o.code != 1 || o.stdout != "" {
			t.Errorf("%s: code %d, stdout %q, stderr %q", mode, o.code, o.stdout, o.stderr)
		}
	}
	// A mount is not to be had out of the way.
	for _, command := range []string{
		`mv deep other`, `mv deep/down other`, `mv deep/down/docker.sock other`, `rm -f docker.sock`, `ln deep/down/docker.sock other`,
	} {
		o := w.run(t, command+`; `+connect("other/down/docker.sock", "other/docker.sock", "other"))
		if o.stdout != "" {
			t.Errorf("%s: stdout %q", command, o.stdout)
		}
		for _, path := range []string{"docker.sock", "deep/down/docker.sock"} {
			if c, err := net.Dial("unix", filepath.Join(w.ws, path)); err != nil {
				t.Errorf("%s: %v", command, err)
			} else {
				c.Close()
			}
		}
		must(t, os.RemoveAll(filepath.Join(w.ws, "other"))) // what mv copied
	}
}

// TestAServerOfTheHostItselfDoesNotObey has a child of this process hold a server of this process's own, as each child does
// from fork to exec.
func TestAServerOfTheHostItselfDoesNotObey(t *testing.T) {
	t.Parallel()
	w := pinned(t, sandboxlocal.BackendBwrap)
	testkit.NeedProgram(t, "python3")
	path := filepath.Join(w.ws, "own.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must(t, err)
	defer l.Close()
	file, err := l.File()
	must(t, err)
	defer file.Close()
	child := exec.Command("sleep", "30811")
	child.ExtraFiles = []*os.File{file}
	must(t, child.Start())
	defer child.Wait()
	defer child.Process.Kill()
	if o := w.run(t, connect(path)); o.stdout != "" {
		t.Errorf("stdout %q", o.stdout)
	}
}

func TestBusesAreOutOfReach(t *testing.T) {
	t.Parallel()
	w := pinned(t, sandboxlocal.BackendBwrap)
	w.env = map[string]string{}
	for _, mode := range []sandbox.Mode{sandbox.ReadOnly, sandbox.WorkspaceWrite} {
		o := w.with(mode).run(t, `env | grep -E '^(DBUS_|XDG_RUNTIME_DIR|DOCKER_HOST|SSH_AUTH_SOCK)'; ls -d /run/dbus /run/user /run/systemd`)
		if o.stdout != "" {
			t.Errorf("%s: %q", mode, o.stdout)
		}
		for _, command := range []string{
			`systemd-run --quiet --wait --collect touch ` + quote(w.outside) + `/ESC`,
			`systemd-run --user --quiet --wait touch ` + quote(w.outside) + `/ESC`,
			`busctl --system list`, `busctl --user list`,
		} {
			if o := w.with(mode).run(t, command); o.code == 0 {
				t.Errorf("%s: %s: exit 0; stdout %q", mode, command, o.stdout)
			}
		}
	}
	absent(t, filepath.Join(w.outside, "ESC"))
}

func TestServersOfACommandServeOtherCommands(t *testing.T) {
	t.Parallel()
	testkit.NeedProgram(t, "python3")
	w := pinned(t, sandboxlocal.BackendBwrap)
	s := w.spec(python() + ` -c 'import socket; s=socket.socket(socket.AF_UNIX); s.bind("ours.sock"); s.listen(); print("up", flush=True)
while True: s.accept()[0].close()'`)
	c, err := w.provider.Confine(t.Context(), sandbox.Request{Spec: s, Policy: w.policy})
	must(t, err)
	defer c.Evidence.Watch().Abandon()
	p, err := w.runtime.Spawn(t.Context(), c.Spec)
	must(t, err)
	defer quiesce(t, p)
	testkit.Eventually(t, limit, "the server is up", func() bool { return p.Stdout().Collected().Total > 0 })
	// Programs give the kernel absolute paths as well.
	for _, path := range []string{"ours.sock", filepath.Join(w.ws, "ours.sock")} {
		if o := w.run(t, connect(path)); o.code != 0 {
			t.Errorf("%s: code %d, stderr %q", path, o.code, o.stderr)
		}
	}
}

func TestNoNetworkWhereNoneIsAskedFor(t *testing.T) {
	t.Parallel()
	testkit.NeedProgram(t, "bwrap")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	connects := fmt.Sprintf(`exec 3<>/dev/tcp/127.0.0.1/%d`, l.Addr().(*net.TCPAddr).Port)
	for network, want := range map[string]bool{sandboxlocal.NetworkHost: true, sandboxlocal.NetworkNone: false} {
		w := build(t, func(c *sandboxlocal.Config) { c.Network = network })
		o := w.run(t, connects)
		if got := o.code == 0; got != want || o.verdict.RunnerFailed {
			t.Errorf("network %s: connected %v, want %v; stderr %q", network, got, want, o.stderr)
		}
	}
}
