package subprocesslocal_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"dsh/internal/testkit"
	"dsh/module"
	"dsh/modules/subprocess"
	"dsh/modules/subprocesslocal"
)

// startLogged starts a runtime and returns what it has logged so far, warnings alone.
func startLogged(t *testing.T, config subprocesslocal.Config) (rt subprocess.Runtime, runner module.Runner, warnings func() string, err error) {
	t.Helper()
	var log lockedBuffer
	res, err := subprocesslocal.New(subprocesslocal.Params{
		Config: config, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		t.Fatal(err)
	}
	err = res.Runner.Start(t.Context())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := res.Runner.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return res.Runtime, res.Runner, log.String, err
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// entering is the configuration of the program dsh.
func entering() subprocesslocal.Config {
	c := subprocesslocal.DefaultConfig()
	c.EnterScope = true
	return c
}

// verdict returns what the runtime found out about a kind.
func verdict(t *testing.T, rt subprocess.Runtime, kind subprocess.RangeKind) subprocess.RangeVerdict {
	t.Helper()
	for _, v := range rt.(subprocess.RangeReporter).Ranges() {
		if v.Kind == kind {
			return v
		}
	}
	t.Fatalf("no verdict on %s", kind)
	return subprocess.RangeVerdict{}
}

// works runs a command whose orphan is to be ended.
func works(t *testing.T, rt subprocess.Runtime) {
	t.Helper()
	p := spawn(t, rt, collected([]string{"bash", "-c", "setsid sleep 4304 & echo hi"}))
	if o, err := p.Outcome(); o.ExitCode != 0 || err != nil || string(p.Stdout().Collected().Tail) != "hi\n" {
		t.Errorf("got %+v, %v, %q", o, err, p.Stdout().Collected().Tail)
	}
	if p.Survivors() != 1 {
		t.Errorf("got %d survivors", p.Survivors())
	}
	p.Terminate()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := p.Quiesce(ctx); err != nil {
		t.Error(err)
	}
	if left := testkit.Processes("sleep", "4304"); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

// TestNextBestKind is about machines where no cgroup can be made.
func TestNextBestKind(t *testing.T) {
	for name, c := range map[string]struct {
		world  testkit.World
		reason string
	}{
		"mounted_read-only": {testkit.World{Cgroups: testkit.CgroupsReadOnly}, "read-only file system"},
		"not_mounted":       {testkit.World{Cgroups: testkit.CgroupsHidden}, "no cgroup v2 hierarchy is mounted"},
		"not_ours":          {testkit.World{UID: 65534, Cgroups: testkit.CgroupsReadOnly}, "permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			if !in(t, c.world) {
				return
			}
			rt, _, warnings, err := startLogged(t, entering())
			if err != nil {
				t.Fatal(err)
			}
			if rt.Range() != subprocess.RangeGroup || !verdict(t, rt, subprocess.RangeGroup).Chosen {
				t.Errorf("got %s", rt.Range())
			}
			if v := verdict(t, rt, subprocess.RangeCgroup); v.Chosen || !strings.Contains(v.Reason, c.reason) {
				t.Errorf("got %+v, want the reason %q", v, c.reason)
			}
			if v := verdict(t, rt, subprocess.RangeScope); v.Chosen || v.Reason == "" {
				t.Errorf("got %+v", v)
			}
			works(t, rt)
			for _, kind := range []subprocess.RangeKind{subprocess.RangeCgroup, subprocess.RangeScope} {
				_, _, _, err = startLogged(t, pinned(kind))
				if want := `range "` + string(kind) + `" is not available: `; err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("pinned to %s: got %v", kind, err)
				}
			}
			if got := warnings(); got != "" {
				t.Errorf("got the warnings %s", got)
			}
		})
	}
}

// TestRefusedClone has a cgroup that can be made, in which no process may be born.
func TestRefusedClone(t *testing.T) {
	if !in(t, testkit.World{UID: 65534}) {
		return
	}
	rt, _, _, err := startLogged(t, pinned(subprocess.RangeCgroup))
	if err != nil {
		t.Fatal(err)
	}
	works(t, rt)
	if err := os.Chmod("/sys/fs/cgroup/cgroup.procs", 0o444); err != nil {
		t.Fatal(err)
	}
	const sentence = "no process can be started in the cgroup /sys/fs/cgroup/dsh-"
	_, err = rt.Spawn(t.Context(), collected([]string{"/bin/true"}))
	if err == nil || !strings.Contains(err.Error(), sentence) || strings.Contains(err.Error(), "executable") {
		t.Errorf("got %v, which should blame the cgroup", err)
	}
	rt, _, _, err = startLogged(t, entering())
	if err != nil {
		t.Fatal(err)
	}
	if v := verdict(t, rt, subprocess.RangeCgroup); rt.Range() != subprocess.RangeGroup || !strings.Contains(v.Reason, sentence) {
		t.Errorf("got %s, %+v", rt.Range(), v)
	}
	works(t, rt)
	if err := os.Chmod("/sys/fs/cgroup/cgroup.procs", 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestProgramIsBlamed has a program that may not be run, in a cgroup with which all is well.
func TestProgramIsBlamed(t *testing.T) {
	rt := start(t)
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := rt.Spawn(t.Context(), collected([]string{program}))
	if err == nil || !strings.Contains(err.Error(), "exec format error") || strings.Contains(err.Error(), "cgroup") {
		t.Errorf("got %v", err)
	}
}

// TestBusThatDoesNotHelp has something else than a manager at the addresses where one is looked for.
func TestBusThatDoesNotHelp(t *testing.T) {
	for name, c := range map[string]struct {
		variable string
		serve    func(net.Conn)
		warns    bool
	}{
		"user_bus_is_mute":    {"DBUS_SESSION_BUS_ADDRESS", func(net.Conn) {}, true},
		"system_bus_is_mute":  {"DBUS_SYSTEM_BUS_ADDRESS", func(net.Conn) {}, true},
		"manager_is_mute":     {"", func(net.Conn) {}, true},
		"bus_hangs_up":        {"DBUS_SESSION_BUS_ADDRESS", func(c net.Conn) { c.Close() }, false},
		"bus_speaks_nonsense": {"DBUS_SESSION_BUS_ADDRESS", func(c net.Conn) { c.Write([]byte("220 mail\r\n")); c.Close() }, false},
		"nobody_listens":      {"DBUS_SESSION_BUS_ADDRESS", nil, false},
		"mute_after_hello": {"DBUS_SESSION_BUS_ADDRESS", func(c net.Conn) {
			buf := make([]byte, 4096)
			for _, answer := range []string{"REJECTED EXTERNAL\r\n", "OK 0123456789abcdef0123456789abcdef\r\n"} {
				c.Read(buf)
				c.Write([]byte(answer))
			}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if !in(t, testkit.World{}) {
				return
			}
			run := t.TempDir()
			t.Setenv("XDG_RUNTIME_DIR", run)
			t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
			t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+run+"/nothing")
			socket := filepath.Join(run, "systemd", "private")
			if c.variable != "" {
				socket = filepath.Join(run, "socket")
				t.Setenv(c.variable, "unix:path="+socket)
			} else if err := os.Mkdir(filepath.Dir(socket), 0o700); err != nil {
				t.Fatal(err)
			}
			if c.serve != nil {
				listen(t, socket, c.serve)
			}

			begin := time.Now()
			rt, _, warnings, err := startLogged(t, entering())
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("choosing took %v", took)
			}
			if v := verdict(t, rt, subprocess.RangeScope); v.Chosen || c.warns && !strings.Contains(v.Reason, socket+" did not answer within 2s") {
				t.Errorf("got %+v", v)
			}
			if rt.Range() != subprocess.RangeCgroup {
				t.Errorf("got %s", rt.Range())
			}
			if got := warnings(); strings.Count(got, "\n") != map[bool]int{true: 1}[c.warns] || c.warns && !strings.Contains(got, socket) {
				t.Errorf("got the warnings %q", got)
			}
			for range 3 {
				works(t, rt)
			}

			begin = time.Now()
			again, _, warnings, err := startLogged(t, entering())
			if err != nil || again.Range() != subprocess.RangeCgroup || warnings() != "" {
				t.Errorf("got %v, %s, the warnings %q", err, again.Range(), warnings())
			}
			if took := time.Since(begin); took > 1500*time.Millisecond {
				t.Errorf("the second runtime of this process took %v to choose", took)
			}
		})
	}
}

// listen serves connections to a socket until the end of the test, and closes them then.
func listen(t *testing.T, socket string, serve func(net.Conn)) {
	t.Helper()
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	var mu sync.Mutex
	var all []net.Conn
	served.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			all = append(all, c)
			mu.Unlock()
			served.Go(func() { serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range all {
			c.Close()
		}
		mu.Unlock()
		served.Wait()
	})
}

// TestManagerGoes has the manager killed, and its addresses taken away, while commands run in the scope that it made.
func TestManagerGoes(t *testing.T) {
	private := func() string { return filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "systemd", "private") }
	for name, c := range map[string]struct{ before, goes func(t *testing.T) }{
		"manager_is_killed": {func(*testing.T) {}, func(t *testing.T) {
			managers := testkit.Processes("/lib/systemd/systemd", "--user", "--log-target=console", "--log-level=err")
			if len(managers) != 1 {
				t.Fatalf("got the managers %v", managers)
			}
			if err := syscall.Kill(managers[0], syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}},
		// Without the manager's own socket, the bus is the way to it.
		"bus_vanishes": {func(t *testing.T) {
			if err := os.Remove(private()); err != nil {
				t.Fatal(err)
			}
		}, func(t *testing.T) {
			if err := exec.Command("pkill", "-KILL", "dbus-daemon").Run(); err != nil {
				t.Errorf("no bus was running: %v", err)
			}
			if err := os.Remove(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "bus")); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			asEachUser(t, testkit.World{UserManager: true}, func(t *testing.T) {
				c.before(t)
				rt, runner, warnings, err := startLogged(t, entering())
				if err != nil {
					t.Fatal(err)
				}
				if rt.Range() != subprocess.RangeScope {
					t.Fatalf("got %s: %+v", rt.Range(), verdict(t, rt, subprocess.RangeScope))
				}
				out, err := exec.Command("systemctl", "--user", "list-units", "--type=scope", "--no-legend", "--plain").Output()
				if err != nil || !strings.Contains(string(out), "and the commands that it runs, started in /") {
					t.Errorf("the manager shows %q, %v", out, err)
				}
				p := spawn(t, rt, collected([]string{"bash", "-c", "setsid sleep 4305 & echo $$; sleep 4305"}))
				testkit.Eventually(t, 20*time.Second, "the command runs", func() bool { return len(testkit.Processes("sleep", "4305")) == 2 })
				c.goes(t)
				works(t, rt)
				if err := runner.Stop(t.Context()); err != nil {
					t.Error(err)
				}
				if err := p.Quiesce(t.Context()); err != nil {
					t.Error(err)
				}
				if left := testkit.Processes("sleep", "4305"); len(left) > 0 || warnings() != "" {
					t.Errorf("%v are left; the warnings are %q", left, warnings())
				}
				// Whoever comes later does without.
				again, _, _, err := startLogged(t, entering())
				if err != nil {
					t.Fatal(err)
				}
				works(t, again)
			})
		})
	}
}

// TestScopeIsEnteredOnlyWithLeave is about programs that embed a runtime: their process stays where it is.
func TestScopeIsEnteredOnlyWithLeave(t *testing.T) {
	asEachUser(t, testkit.World{UserManager: true}, func(t *testing.T) {
		before, err := os.ReadFile("/proc/self/cgroup")
		if err != nil {
			t.Fatal(err)
		}
		rt := start(t)
		if v := verdict(t, rt, subprocess.RangeScope); v.Chosen || !strings.Contains(v.Reason, "enterScope") {
			t.Errorf("got %+v", v)
		}
		works(t, rt)
		if after, err := os.ReadFile("/proc/self/cgroup"); string(after) != string(before) || err != nil {
			t.Errorf("moved from %s to %s, %v", before, after, err)
		}
	})
}

// TestTwoRuntimesInOneScope starts a second runtime when the first has moved this process already.
func TestTwoRuntimesInOneScope(t *testing.T) {
	asEachUser(t, testkit.World{UserManager: true}, func(t *testing.T) {
		rt, runner, _, err := startLogged(t, entering())
		if err != nil {
			t.Fatal(err)
		}
		works(t, rt)
		second, _, _, err := startLogged(t, entering())
		if err != nil || second.Range() != subprocess.RangeScope {
			t.Fatalf("got %v, %s", err, second.Range())
		}
		works(t, second)
		if err := runner.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		works(t, second)
		third, _, _, err := startLogged(t, entering())
		if err != nil || third.Range() != subprocess.RangeScope {
			t.Fatalf("got %v, %s", err, third.Range())
		}
		works(t, third)
	})
}

const nestedVariable = "TEST_NESTED"

// TestNested is a host of its own in what the tests below start.
func TestNested(t *testing.T) {
	if os.Getenv(nestedVariable) == "" {
		return
	}
	rt, _, _, err := startLogged(t, entering())
	if err != nil {
		t.Fatal(err)
	}
	v := verdict(t, rt, subprocess.RangeScope)
	p := spawn(t, rt, collected([]string{"cat", "/proc/self/cgroup"}))
	<-p.Done()
	t.Logf("kind=%s scope=%q cgroup=%s", rt.Range(), v.Reason, strings.TrimSpace(string(p.Stdout().Collected().Tail)))
	if _, _, _, err := startLogged(t, pinned(subprocess.RangeScope)); err == nil {
		t.Error("pinned to scope, it left where it was")
	}
	if os.Getenv(nestedVariable) == "stay" {
		stay := spawn(t, rt, collected([]string{"bash", "-c", "setsid sleep 4306 & sleep 4306"}))
		<-stay.Done()
	}
}

// TestNestedHostStaysInItsRange has a host among the commands of another.
func TestNestedHostStaysInItsRange(t *testing.T) {
	if !in(t, testkit.World{UserManager: true}) {
		return
	}
	rt, _, _, err := startLogged(t, entering())
	if err != nil {
		t.Fatal(err)
	}
	s := collected([]string{os.Args[0], "-test.run", "^TestNested$", "-test.v"})
	s.Env.Set = map[string]string{nestedVariable: "report"}
	p := spawn(t, rt, s)
	o, err := p.Outcome()
	out := string(p.Stdout().Collected().Tail)
	if o.ExitCode != 0 || err != nil || !strings.Contains(out, "kind=cgroup ") || !strings.Contains(out, "in the range of another") ||
		!strings.Contains(out, ".scope/cmds/cmd-2/p/dsh-") {
		t.Errorf("got %+v, %v\n%s", o, err, out)
	}

	s.Env.Set[nestedVariable] = "stay"
	p = spawn(t, rt, s)
	testkit.Eventually(t, 20*time.Second, "the command of the command runs", func() bool { return len(testkit.Processes("sleep", "4306")) == 2 })
	p.Terminate()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := p.Quiesce(ctx); err != nil {
		t.Error(err)
	}
	if left := testkit.Processes("sleep", "4306"); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

// TestServiceIsNotLeft has a host that is a service of a manager which would make it a scope.
func TestServiceIsNotLeft(t *testing.T) {
	asEachUser(t, testkit.World{UserManager: true}, func(t *testing.T) {
		for _, delegate := range []string{"yes", "no"} {
			out, err := exec.Command("systemd-run", "--user", "--wait", "--pipe", "--quiet", "--collect", "--unit=host-"+delegate, "-p", "Delegate="+delegate,
				"-E", nestedVariable+"=report", os.Args[0], "-test.run", "^TestNested$", "-test.v").CombinedOutput()
			if err != nil || !strings.Contains(string(out), "kind=cgroup ") || !strings.Contains(string(out), "the service host-"+delegate+".service") ||
				!strings.Contains(string(out), "/host-"+delegate+".service/dsh-") {
				t.Errorf("Delegate=%s: %v\n%s", delegate, err, out)
			}
		}
	})
}
