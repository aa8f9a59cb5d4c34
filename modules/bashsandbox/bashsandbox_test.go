package bashsandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"dsh/internal/testkit"
	"dsh/modules/bashsandbox"
	"dsh/modules/sandbox"
	"dsh/modules/sandboxlocal"
	"dsh/modules/sandboxpolicy"
	"dsh/modules/shell"
	"dsh/modules/shell/shelltest"
	"dsh/modules/subprocess"
	"dsh/modules/subprocesslocal"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const limit = 30 * time.Second

// rows are those that the executor needs, over a workspace of their own.
type rows struct {
	dir, ws  string
	runtime  subprocess.Runtime
	provider sandbox.Provider
	policies sandbox.Policies
	shell.Executor
}

// environment guards DSH_HOME, which modules read when they are made.
var environment sync.Mutex

type settings struct {
	mode    sandbox.Mode
	backend string
	wrap    func(sandbox.Provider) sandbox.Provider
	edit    func(*bashsandbox.Config)
}

func open(t testing.TB, s settings) *rows {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "dsh-test-")
	must(t, err)
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	r := &rows{dir: dir, ws: filepath.Join(dir, "ws")}
	must(t, os.Mkdir(r.ws, 0o700))
	if s.mode == "" {
		s.mode = sandbox.WorkspaceWrite
	}
	environment.Lock()
	defer environment.Unlock()
	before, had := os.LookupEnv("DSH_HOME")
	os.Setenv("DSH_HOME", filepath.Join(dir, "home"))
	defer func() {
		if os.Unsetenv("DSH_HOME"); had {
			os.Setenv("DSH_HOME", before)
		}
	}()
	log := slog.New(slog.DiscardHandler)
	sub, err := subprocesslocal.New(subprocesslocal.Params{Config: subprocesslocal.DefaultConfig(), Log: log})
	must(t, err)
	must(t, sub.Runner.Start(t.Context()))
	stopped(t, sub.Runner.Stop)
	sc := sandboxlocal.DefaultConfig()
	if s.backend != "" {
		sc.Backend = s.backend
	}
	sb, err := sandboxlocal.New(sandboxlocal.Params{Config: sc, Runtime: sub.Runtime, Log: log})
	must(t, err)
	stopped(t, sb.Runner.Stop)
	pol, err := sandboxpolicy.New(sandboxpolicy.Params{Config: sandboxpolicy.Config{Mode: s.mode, WorkspaceRoot: r.ws}})
	must(t, err)
	r.runtime, r.provider, r.policies = sub.Runtime, sb.Provider, pol.Policies
	if s.wrap != nil {
		r.provider = s.wrap(r.provider)
	}
	c := bashsandbox.DefaultConfig()
	c.GraceMs = 1500
	if s.edit != nil {
		s.edit(&c)
	}
	x, err := bashsandbox.New(bashsandbox.Params{Config: c, Runtime: r.runtime, Sandbox: r.provider, Policies: r.policies})
	must(t, err)
	must(t, x.Run.Start(t.Context()))
	r.Executor = x.Executor
	return r
}

func stopped(t testing.TB, stop func(context.Context) error) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (r *rows) resolve(t testing.TB, command string) shell.Spec {
	t.Helper()
	s, err := r.Resolve(shell.Request{Command: command})
	must(t, err)
	return s
}

func (r *rows) run(t testing.TB, command string) shell.Result {
	t.Helper()
	res, err := r.Run(t.Context(), r.resolve(t, command))
	if err != nil {
		t.Fatalf("%.200q: %v", command, err)
	}
	return res
}

func need(t testing.TB, backend string) {
	t.Helper()
	if backend == sandboxlocal.BackendBwrap {
		testkit.NeedProgram(t, "bwrap")
		return
	}
	r := open(t, settings{backend: backend})
	testkit.Need(t, "Landlock in the kernel", r.provider.Backends(t.Context())[0].Usable)
}

var both = []string{sandboxlocal.BackendBwrap, sandboxlocal.BackendLandlock}

func TestConfinedCommandsKeepTheShellsContract(t *testing.T) {
	t.Parallel()
	for _, backend := range both {
		t.Run(backend, func(t *testing.T) {
			need(t, backend)
			var mu sync.Mutex
			workspaces := map[testing.TB]string{}
			shelltest.Run(t, func(t testing.TB) shell.Executor {
				r := open(t, settings{backend: backend})
				mu.Lock()
				defer mu.Unlock()
				workspaces[t] = r.ws
				return r.Executor
			}, shelltest.Options{
				Ranges: true, StatusOfSignals: backend == sandboxlocal.BackendBwrap,
				Dir: func(t testing.TB) string {
					mu.Lock()
					defer mu.Unlock()
					dir, err := os.MkdirTemp(workspaces[t], "dir")
					must(t, err)
					return dir
				},
			})
		})
	}
}

func TestAResultSaysWhatTheSandboxDid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, backend, command string
		mode                   sandbox.Mode
		want                   string
	}{
		{"bwrap", "bwrap", `true`, sandbox.WorkspaceWrite, `{"mode":"workspace-write","denied":false,"enforcement":"full","backend":"bwrap"}`},
		{"bwrap, denied", "bwrap", `touch ../esc`, sandbox.ReadOnly, `{"mode":"read-only","denied":true,"enforcement":"full","backend":"bwrap"}`},
		{"landlock", "landlock", `false`, sandbox.ReadOnly, `{"mode":"read-only","denied":false,"enforcement":"partial","backend":"landlock"}`},
		{"landlock, denied", "landlock", `touch ../esc`, sandbox.WorkspaceWrite, `{"mode":"workspace-write","denied":true,"deniedBy":"text","enforcement":"partial","backend":"landlock"}`},
		{"no confinement", "bwrap", `touch ../esc; false`, sandbox.DangerFullAccess, `{"mode":"danger-full-access","denied":false}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			need(t, c.backend)
			r := open(t, settings{mode: c.mode, backend: c.backend})
			got, err := json.Marshal(r.run(t, c.command).Sandbox)
			must(t, err)
			if string(got) != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if mode, ok := r.Mode(); mode != c.mode || !ok {
				t.Errorf("the executor's mode is %q, %v", mode, ok)
			}
			p, err := r.Start(t.Context(), r.resolve(t, c.command))
			must(t, err)
			<-p.Done()
			facts := p.Status().Sandbox
			if c.mode == sandbox.DangerFullAccess {
				if facts != nil {
					t.Errorf("in the background: got %+v, want nothing", facts)
				}
			} else if got, _ := json.Marshal(facts); string(got) != c.want {
				t.Errorf("in the background: got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestACallsPolicyGoesBeforeTheStandingOne(t *testing.T) {
	t.Parallel()
	need(t, "bwrap")
	r := open(t, settings{mode: sandbox.ReadOnly})
	if res := r.run(t, `touch f`); *res.ExitCode == 0 {
		t.Error("read-only: a file was made")
	}
	p, err := r.policies.Resolve(t.Context(), sandbox.Session{}, sandbox.WorkspaceWrite)
	must(t, err)
	s, err := r.Resolve(shell.Request{Command: `touch f`, Policy: &p})
	must(t, err)
	p.Mode = sandbox.ReadOnly // what was resolved stands
	if res, err := r.Run(t.Context(), s); err != nil || *res.ExitCode != 0 || res.Sandbox.Mode != sandbox.WorkspaceWrite {
		t.Errorf("approved: %+v, %v", res, err)
	}
	if res := r.run(t, `rm f`); *res.ExitCode == 0 {
		t.Error("the approval has stayed")
	}
	for name, p := range map[string]*sandbox.Policy{"none": nil, "empty": {}, "a mode that is none": {Mode: "x", WorkspaceRoot: r.ws}} {
		s.Policy = p
		if _, err := r.Run(t.Context(), s); err == nil {
			t.Errorf("policy %s: the command was run", name)
		}
		if _, err := r.Start(t.Context(), s); err == nil {
			t.Errorf("policy %s: the command was started", name)
		}
	}
}

func TestCommandsStartInTheWorkspace(t *testing.T) {
	t.Parallel()
	need(t, "bwrap")
	r := open(t, settings{})
	if res := r.run(t, `pwd`); res.Stdout.Text != r.ws+"\n" {
		t.Errorf("got %q", res.Stdout.Text)
	}
	s, err := r.Resolve(shell.Request{Command: `pwd`, Workdir: filepath.Join(r.ws, "missing")})
	must(t, err)
	_, err = r.Run(t.Context(), s)
	if d := (*subprocess.DirError)(nil); !errors.As(err, &d) || d.Dir != s.Workdir {
		t.Errorf("got %v, want the directory's error", err)
	}
}

func TestBashCallsItselfBash(t *testing.T) {
	t.Parallel()
	for _, backend := range both {
		need(t, backend)
		r := open(t, settings{backend: backend})
		for command, want := range map[string]string{
			`echo "$0" $#`:     "bash 0\n",
			`-x; echo "$0" $#`: "bash 0\n",
			`: ` + strings.Repeat("x", 200_000) + "\n" + `echo "$0" $#`: "bash 0\n",
		} {
			if res := r.run(t, command); res.Stdout.Text != want {
				t.Errorf("%s: %.20q: got %q, stderr %q", backend, command, res.Stdout.Text, res.Stderr.Text)
			}
		}
		if res := r.run(t, `nosuchcommand`); !strings.HasPrefix(res.Stderr.Text, "bash: ") {
			t.Errorf("%s: stderr %q", backend, res.Stderr.Text)
		}
	}
}

func TestASpilledOutputCanBeReadByTheNextCommand(t *testing.T) {
	t.Parallel()
	for _, backend := range both {
		need(t, backend)
		r := open(t, settings{backend: backend})
		res := r.run(t, `seq 1 200000`)
		if !res.Stdout.Truncated || res.Stdout.SpillPath == "" {
			t.Fatalf("%s: nothing was spilled: %+v", backend, res.Stdout.Bytes)
		}
		if res := r.run(t, `wc -l < '`+res.Stdout.SpillPath+`'; : >> '`+res.Stdout.SpillPath+`'`); res.Stdout.Text != "200000\n" || *res.ExitCode == 0 {
			t.Errorf("%s: got %q, exit %d, stderr %q", backend, res.Stdout.Text, *res.ExitCode, res.Stderr.Text)
		}
	}
}

// slow is a provider whose preparation waits for its context.
type slow struct{ sandbox.Provider }

func (slow) Confine(ctx context.Context, _ sandbox.Request) (*sandbox.Confined, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func TestAPreparationHasTheCommandsTime(t *testing.T) {
	t.Parallel()
	r := open(t, settings{wrap: func(p sandbox.Provider) sandbox.Provider { return slow{p} }})
	s := r.resolve(t, `touch ran`)
	s.Timeout = 50 * time.Millisecond
	res, err := r.Run(t.Context(), s)
	if err != nil || !res.TimedOut || res.Aborted || res.ExitCode != nil || res.TimeoutMs != 50 {
		t.Errorf("a timeout: %+v, %v", res, err)
	}
	if got, _ := json.Marshal(res.Sandbox); string(got) != `{"mode":"workspace-write","denied":false}` {
		t.Errorf("a timeout claims %s", got)
	}
	cause := errors.New("changed my mind")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(cause) })
	s.Timeout = time.Hour
	if res, err := r.Run(ctx, s); err != nil || res.TimedOut || !res.Aborted || res.ExitCode != nil {
		t.Errorf("a cancel: %+v, %v", res, err)
	}
	if _, err := r.Start(ctx, s); !errors.Is(err, cause) {
		t.Errorf("a cancelled start: %v", err)
	}
	if _, err := os.Stat(filepath.Join(r.ws, "ran")); err == nil {
		t.Error("the command was run")
	}
}

// fakeBwrap puts a program before the real one.
func fakeBwrap(t *testing.T, script string) {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "dsh-test-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.WriteFile(filepath.Join(dir, "bwrap"), []byte("#!/bin/bash\n"+script), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestABrokenRunnerRunsNothing(t *testing.T) {
	for name, script := range map[string]string{
		"refused":         "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1",
		"the probe lies":  `[[ "$*" == */true ]] && { printf '{ "exit-code": 0 }' >&"$(grep -oP '(?<=--json-status-fd )\d+' <<< "$*")"; exit 0; }; echo 'bwrap: no' >&2; exit 1`,
		"fails after all": `echo '{ "child-pid": 1 }' >&"$(grep -oP '(?<=--json-status-fd )\d+' <<< "$*")"; echo 'bwrap: no' >&2; exit 1`,
	} {
		t.Run(name, func(t *testing.T) {
			fakeBwrap(t, script)
			r := open(t, settings{backend: "bwrap"})
			var u *sandbox.UnavailableError
			var seen strings.Builder
			s := r.resolve(t, `touch ran`)
			s.Progress = func(_ shell.Stream, p []byte) { seen.Write(p) }
			_, err := r.Run(t.Context(), s)
			if !errors.As(err, &u) || u.Mode != sandbox.WorkspaceWrite || !strings.Contains(u.Reason, "no") && !strings.Contains(u.Reason, "uid map") {
				t.Errorf("foreground: %v", err)
			}
			if seen.Len() > 0 {
				t.Errorf("the runner's words were shown as the command's: %q", seen.String())
			}
			s.Progress, s.Stdin = nil, strings.NewReader("input")
			if _, err := r.Run(t.Context(), s); !errors.As(err, &u) {
				t.Errorf("with input: %v", err)
			}
			s.Stdin = nil
			p, err := r.Start(t.Context(), s)
			if err == nil { // it was seen to work
				<-p.Done()
				if st := p.Status(); st.Sandbox == nil || !st.Sandbox.RunnerFailed || st.Sandbox.Denied {
					t.Errorf("background: %+v", st.Sandbox)
				}
			} else if !errors.As(err, &u) {
				t.Errorf("background: %v", err)
			}
			if _, err := os.Stat(filepath.Join(r.ws, "ran")); err == nil {
				t.Error("the command was run")
			}
		})
	}
}

func TestABrokenRunnerGivesWay(t *testing.T) {
	need(t, "landlock")
	fakeBwrap(t, "cat > /dev/null; echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1")
	for _, input := range []bool{false, true} {
		r := open(t, settings{})
		s := r.resolve(t, `cat; echo out; echo err >&2`)
		var mu sync.Mutex
		var seen strings.Builder
		s.Progress = func(_ shell.Stream, p []byte) {
			mu.Lock()
			defer mu.Unlock()
			seen.Write(p)
		}
		want := "out\n"
		if input {
			s.Stdin, want = strings.NewReader("input\n"), "input\nout\n"
		}
		res, err := r.Run(t.Context(), s)
		if err != nil || res.Stdout.Text != want || res.Stderr.Text != "err\n" || res.Sandbox.Backend != "landlock" {
			t.Errorf("input %v: %+v, %v", input, res, err)
		}
		if strings.Contains(seen.String(), "bwrap") || len(seen.String()) != len(want)+4 {
			t.Errorf("input %v: seen %q", input, seen.String())
		}
	}
	p, err := open(t, settings{}).Executor.Start(t.Context(), open(t, settings{}).resolve(t, `true`))
	must(t, err)
	<-p.Done()
	if f := p.Status().Sandbox; f == nil || f.Backend != "landlock" {
		t.Errorf("background: %+v", f)
	}
}

func TestCommandsKilledWhileTheyStartLeaveNothing(t *testing.T) {
	t.Parallel()
	for _, backend := range both {
		need(t, backend)
		r := open(t, settings{backend: backend, edit: func(c *bashsandbox.Config) { c.GraceMs = 200 }})
		marker := fmt.Sprintf("41%d", 25+len(backend))
		var all sync.WaitGroup
		room := make(chan struct{}, 4)
		for i := range 150 {
			all.Go(func() {
				room <- struct{}{}
				defer func() { <-room }()
				s := r.resolve(t, `sleep `+marker)
				s.Timeout = time.Duration(1+i%10) * time.Millisecond
				res, err := r.Run(t.Context(), s)
				if err != nil || !res.TimedOut || res.Sandbox == nil || res.Sandbox.Denied {
					t.Errorf("%s, %v: %+v, %v", backend, s.Timeout, res, err)
				}
			})
		}
		all.Wait()
		testkit.Eventually(t, 5*time.Second, "no process is left", func() bool { return len(testkit.Processes("sleep", marker)) == 0 })
	}
}

func TestModuleIsWellFormed(t *testing.T) {
	t.Parallel()
	m := bashsandbox.Module()
	if m.Name() != "bash-sandbox" || len(m.Provides()) != 1 || len(m.Needs()) != 3 || m.Supports("win32") {
		t.Errorf("%q provides %v and needs %v", m.Name(), m.Provides(), m.Needs())
	}
	if err := m.Validate(m.DefaultConfig()); err != nil {
		t.Error(err)
	}
}

func TestARunnerThatStumbledOnceIsUsedAgain(t *testing.T) {
	real := testkit.NeedProgram(t, "bwrap")
	for _, background := range []bool{false, true} {
		once := filepath.Join(t.TempDir(), "once")
		fakeBwrap(t, `case "$*" in *stumble*) if mkdir '`+once+`' 2>/dev/null; then
			echo "bwrap: Can't create file at /x: Read-only file system" >&2; exit 1
		fi; esac; exec `+real+` "$@"`)
		r := open(t, settings{backend: sandboxlocal.BackendBwrap})
		s := r.resolve(t, `echo stumble`)
		if !background {
			res, err := r.Run(t.Context(), s)
			if err != nil || res.Stdout.Text != "stumble\n" || res.Stderr.Text != "" || res.Sandbox.Denied {
				t.Errorf("foreground: %+v, %v", res, err)
			}
			continue
		}
		p, err := r.Start(t.Context(), s)
		must(t, err)
		<-p.Done()
		st := p.Status()
		if d := p.ReadOutput(); d.Stdout != "stumble\n" || d.Stderr != "" || st.Sandbox.RunnerFailed || st.Sandbox.Denied {
			t.Errorf("background: %+v, %+v, %+v", d, st, st.Sandbox)
		}
	}
}
