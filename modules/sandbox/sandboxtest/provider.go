package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"dsh/modules/sandbox"
	"dsh/modules/subprocess"
)

// Bench is a provider with a runtime that spawns what it confines.
type Bench struct {
	Provider sandbox.Provider
	Runtime  subprocess.Runtime
}

// Run checks that providers keep the contract's promises. open returns a provider that works on this machine.
func Run(t *testing.T, open func(testing.TB) Bench) {
	for _, c := range providerChecks() {
		t.Run(c.name, func(t *testing.T) { c.check(&bench{TB: t, Bench: open(t)}) })
	}
}

type providerCheck struct {
	name  string
	check func(*bench)
}

func providerChecks() []providerCheck {
	return []providerCheck{
		{"read-only writes nowhere", readOnly},
		{"workspace-write writes in the workspace alone", workspaceWrite},
		{"the process is the caller's but for its limits", faithful},
		{"the caller's Spec is not changed", unchanged},
		{"descriptors keep their numbers", descriptors},
		{"no confinement is not given out as one", noPassthrough},
		{"a policy that is none is refused", noPolicy},
		{"a cancelled call prepares nothing", cancelledConfine},
		{"a directory that is not there is named", missingDirectory},
		{"a refusal is told from a failure", refusals},
		{"calls at once have evidence of their own", overlapping},
		{"what is not spawned leaves nothing", released},
		{"what is enforced is said", described},
	}
}

// limit is how long a command may take on a busy machine.
const limit = 30 * time.Second

type bench struct {
	testing.TB
	Bench
	workspace, outside string
}

// prepare makes the directories, outside of what sandboxes commonly hide.
func (b *bench) prepare() {
	b.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "dsh-sandboxtest-")
	must(b.TB, err)
	b.Cleanup(func() { os.RemoveAll(dir) })
	dir, err = filepath.EvalSymlinks(dir)
	must(b.TB, err)
	b.workspace, b.outside = filepath.Join(dir, "ws"), filepath.Join(dir, "outside")
	must(b.TB, os.Mkdir(b.workspace, 0o700))
	must(b.TB, os.Mkdir(b.outside, 0o700))
}

func (b *bench) policy(m sandbox.Mode) sandbox.Policy {
	if b.workspace == "" {
		b.prepare()
	}
	return sandbox.Policy{Mode: m, WorkspaceRoot: b.workspace, SessionID: "suite"}
}

func (b *bench) spec(script string, arguments ...string) subprocess.Spec {
	b.Helper()
	bash, err := b.Runtime.ResolveExecutable(b.Context(), "bash")
	must(b.TB, err)
	return subprocess.Spec{
		Argv: append([]string{bash, "-c", script, "bash"}, arguments...), Dir: b.workspace, Grace: time.Second,
		Stdout: subprocess.Output{Collect: &subprocess.Collect{MaxBytes: 1 << 16}},
		Stderr: subprocess.Output{Collect: &subprocess.Collect{MaxBytes: 1 << 16}},
	}
}

type ended struct {
	code           int
	stdout, stderr string
	verdict        sandbox.Verdict
}

func (b *bench) confine(r sandbox.Request) *sandbox.Confined {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), limit)
	defer cancel()
	c, err := b.Provider.Confine(ctx, r)
	if err != nil {
		b.Fatalf("confine: %v", err)
	}
	return c
}

func (b *bench) run(r sandbox.Request) ended {
	b.Helper()
	c := b.confine(r)
	w := c.Evidence.Watch()
	stderr := *c.Spec.Stderr.Collect
	stderr.Tee = w.Stderr
	c.Spec.Stderr.Collect = &stderr
	p, err := b.Runtime.Spawn(b.Context(), c.Spec)
	if err != nil {
		w.Abandon()
		b.Fatalf("spawn: %v", err)
	}
	select {
	case <-p.Done():
	case <-time.After(limit):
		p.Terminate()
		<-p.Done()
		b.Errorf("%q goes on after %v", r.Spec.Argv, limit)
	}
	o, err := p.Outcome()
	must(b.TB, err)
	return ended{
		code: o.ExitCode, stdout: string(p.Stdout().Collected().Tail), stderr: string(p.Stderr().Collected().Tail),
		verdict: w.End(o, false),
	}
}

func (b *bench) command(m sandbox.Mode, script string, arguments ...string) ended {
	b.Helper()
	p := b.policy(m)
	return b.run(sandbox.Request{Spec: b.spec(script, arguments...), Policy: p})
}

func (b *bench) absent(path string) {
	b.Helper()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		b.Errorf("%s is there", path)
	}
}

func readOnly(b *bench) {
	b.policy(sandbox.ReadOnly)
	must(b.TB, os.WriteFile(filepath.Join(b.workspace, "here"), []byte("here\n"), 0o600))
	if e := b.command(sandbox.ReadOnly, `cat here && echo x > /dev/null`); e.code != 0 || e.stdout != "here\n" {
		b.Errorf("reading: %+v", e)
	}
	for _, dir := range []string{b.workspace, b.outside} {
		if e := b.command(sandbox.ReadOnly, `echo x > "$1/new"`, dir); e.code == 0 {
			b.Errorf("writing in %s: exit 0", dir)
		}
		b.absent(filepath.Join(dir, "new"))
	}
}

func workspaceWrite(b *bench) {
	b.policy(sandbox.WorkspaceWrite)
	if e := b.command(sandbox.WorkspaceWrite, `mkdir d && echo x > d/new && mv d/new e && echo x > /dev/null`); e.code != 0 || e.verdict.Denied {
		b.Errorf("in the workspace: %+v", e)
	}
	if _, err := os.Stat(filepath.Join(b.workspace, "e")); err != nil {
		b.Errorf("what was written is not there: %v", err)
	}
	if e := b.command(sandbox.WorkspaceWrite, `echo x > "$1/new"`, b.outside); e.code == 0 {
		b.Errorf("outside: exit 0")
	}
	if e := b.command(sandbox.WorkspaceWrite, `ln -s "$1" link && echo x > link/new`, b.outside); e.code == 0 {
		b.Errorf("outside, through a link: exit 0")
	}
	b.absent(filepath.Join(b.outside, "new"))
	// The next command may do no more for what an earlier one might.
	if e := b.command(sandbox.ReadOnly, `echo x > new`); e.code == 0 {
		b.Errorf("read-only after workspace-write: exit 0")
	}
}

func faithful(b *bench) {
	p := b.policy(sandbox.WorkspaceWrite)
	s := b.spec(`printf '<%s>' "$@"; echo "$VAR"; cat; pwd -P; echo words >&2; exit 42`, "a b", "", "c\nd", "--", "é'\"$x")
	s.Stdin = subprocess.Stdin{Bytes: []byte("input\n")}
	s.Env = subprocess.Env{Set: map[string]string{"VAR": "a value"}}
	e := b.run(sandbox.Request{Spec: s, Policy: p})
	want := "<a b><><c\nd><--><é'\"$x>a value\ninput\n" + b.workspace + "\n"
	if e.code != 42 || e.stdout != want || e.stderr != "words\n" || e.verdict != (sandbox.Verdict{}) {
		b.Errorf("got %+v, want exit 42 and %q", e, want)
	}
}

func unchanged(b *bench) {
	p := b.policy(sandbox.WorkspaceWrite)
	s := b.spec("true")
	s.Env = subprocess.Env{Set: map[string]string{"LD_LIBRARY_PATH": "/x", "TMPDIR": "/y"}, Unset: make([]string, 1, 100)}
	s.Env.Unset[0] = "NOTHING"
	argv, set, unset := slices.Clone(s.Argv), maps.Clone(s.Env.Set), slices.Clone(s.Env.Unset[:cap(s.Env.Unset)])
	if e := b.run(sandbox.Request{Spec: s, Policy: p}); e.code != 0 {
		b.Errorf("got %+v", e)
	}
	if !slices.Equal(s.Argv, argv) || !maps.Equal(s.Env.Set, set) || !slices.Equal(s.Env.Unset[:cap(s.Env.Unset)], unset) {
		b.Errorf("the Spec has become %q, %q, %q", s.Argv, s.Env.Set, s.Env.Unset)
	}
}

func descriptors(b *bench) {
	p := b.policy(sandbox.WorkspaceWrite)
	read, write, err := os.Pipe()
	must(b.TB, err)
	defer read.Close()
	s := b.spec(`echo given >&3`)
	s.ExtraFiles = append(make([]*os.File, 0, 8), write)
	e := b.run(sandbox.Request{Spec: s, Policy: p})
	var given bytes.Buffer
	_, err = given.ReadFrom(read)
	must(b.TB, err)
	if given.String() != "given\n" {
		b.Errorf("through descriptor 3 came %q; %+v", given.String(), e)
	}
	if more := s.ExtraFiles[:cap(s.ExtraFiles)]; more[1] != nil {
		b.Errorf("the caller's slice was written to")
	}
}

func (b *bench) refused(r sandbox.Request) {
	b.Helper()
	c, err := b.Provider.Confine(b.Context(), r)
	var u *sandbox.UnavailableError
	if !errors.As(err, &u) || u.Mode != r.Policy.Mode {
		b.Errorf("%+v: got %v, want it unavailable", r.Policy, err)
	}
	if c != nil {
		b.Errorf("%+v: got something to spawn", r.Policy)
	}
}

func noPassthrough(b *bench) {
	p := b.policy(sandbox.DangerFullAccess)
	b.refused(sandbox.Request{Spec: b.spec("true"), Policy: p})
}

func noPolicy(b *bench) {
	p := b.policy("anything")
	s := b.spec("true")
	b.refused(sandbox.Request{Spec: s, Policy: p})
	b.refused(sandbox.Request{Spec: s, Policy: sandbox.Policy{Mode: sandbox.WorkspaceWrite}})
	b.refused(sandbox.Request{Spec: s, Policy: sandbox.Policy{Mode: sandbox.WorkspaceWrite, WorkspaceRoot: "relative"}})
	b.refused(sandbox.Request{Spec: s, Policy: sandbox.Policy{WorkspaceRoot: b.workspace}})
}

func cancelledConfine(b *bench) {
	p := b.policy(sandbox.ReadOnly)
	cause := errors.New("changed my mind")
	ctx, cancel := context.WithCancelCause(b.Context())
	cancel(cause)
	if c, err := b.Provider.Confine(ctx, sandbox.Request{Spec: b.spec("true"), Policy: p}); !errors.Is(err, cause) || c != nil {
		b.Errorf("got %v, %v, want the cause", c, err)
	}
}

func missingDirectory(b *bench) {
	p := b.policy(sandbox.ReadOnly)
	s := b.spec("true")
	s.Dir = filepath.Join(b.workspace, "missing")
	c, err := b.Provider.Confine(b.Context(), sandbox.Request{Spec: s, Policy: p})
	if err == nil { // then it is the runtime that looks
		w := c.Evidence.Watch()
		_, err = b.Runtime.Spawn(b.Context(), c.Spec)
		w.Abandon()
	}
	var d *subprocess.DirError
	if !errors.As(err, &d) || d.Dir != s.Dir {
		b.Errorf("got %v, want the directory's error", err)
	}
}

func refusals(b *bench) {
	b.policy(sandbox.WorkspaceWrite)
	for _, c := range []struct {
		name, script string
		want         bool
	}{
		{"a refused write", `echo x > "$1/new"`, true},
		{"a refused write and many words", `echo x > "$1/new"; head -c 200000 /dev/zero | tr '\0' x >&2; exit 3`, true},
		{"a refused write that did not matter", `echo x > "$1/new"; exit 0`, false},
		{"an ordinary failure", `exit 3`, false},
		{"words of its own", `echo 'no such file' >&2; exit 1`, false},
	} {
		e := b.command(sandbox.WorkspaceWrite, c.script, b.outside)
		if e.verdict.Denied != c.want || e.verdict.RunnerFailed {
			b.Errorf("%s: got %+v, want denied %v; code %d", c.name, e.verdict, c.want, e.code)
		}
	}
}

func overlapping(b *bench) {
	p := b.policy(sandbox.WorkspaceWrite)
	scripts := []string{`echo x > "$1/new"`, `exit 3`, `echo x > "$1/new"`, `exit 0`}
	got := make([]sandbox.Verdict, len(scripts))
	requests := make([]sandbox.Request, len(scripts))
	for i, script := range scripts {
		requests[i] = sandbox.Request{Spec: b.spec(script, b.outside), Policy: p}
	}
	var all sync.WaitGroup
	for i := range scripts {
		all.Go(func() { got[i] = b.run(requests[i]).verdict })
	}
	all.Wait()
	for i, want := range []bool{true, false, true, false} {
		if got[i].Denied != want {
			b.Errorf("%s: denied %v, want %v", scripts[i], got[i].Denied, want)
		}
	}
}

func released(b *bench) {
	p := b.policy(sandbox.WorkspaceWrite)
	prepare := func() {
		c := b.confine(sandbox.Request{Spec: b.spec("true"), Policy: p})
		w := c.Evidence.Watch()
		w.Abandon()
		w.Abandon()
	}
	for range 3 {
		prepare() // what is made once
	}
	before := openDescriptors()
	const times = 50
	for range times {
		prepare()
	}
	if after := openDescriptors(); after > before+times/2 {
		b.Errorf("%d descriptors have become %d", before, after)
	}
}

func openDescriptors() int {
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0 // no such list here; then nothing is found
	}
	return len(fds)
}

func described(b *bench) {
	p := b.policy(sandbox.ReadOnly)
	c := b.confine(sandbox.Request{Spec: b.spec("true"), Policy: p, Proven: true})
	c.Evidence.Watch().Abandon()
	chosen := ""
	for _, backend := range b.Provider.Backends(b.Context()) {
		if backend.Chosen {
			chosen = backend.Name
		}
		if backend.Chosen && !backend.Usable || !backend.Usable && backend.Reason == "" {
			b.Errorf("got %+v", backend)
		}
	}
	if c.Backend == "" || c.Backend != chosen || c.Enforcement != sandbox.Full && c.Enforcement != sandbox.Partial {
		b.Errorf("backend %q, enforcement %q; the chosen one is %q", c.Backend, c.Enforcement, chosen)
	}
	if c.Enforcement == sandbox.Partial && len(c.NotEnforced) == 0 {
		b.Errorf("it is not said what is not enforced")
	}
}
