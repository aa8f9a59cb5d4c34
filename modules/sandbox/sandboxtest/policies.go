package sandboxtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"dsh/modules/sandbox"
)

// OpenPolicies returns policies with a default mode, a workspace, and what sessions chose; o may be nil.
type OpenPolicies = func(t testing.TB, mode sandbox.Mode, root string, o sandbox.Overrides) sandbox.Policies

// RunPolicies checks that policies keep the contract's promises.
func RunPolicies(t *testing.T, open OpenPolicies) {
	for _, c := range policyChecks() {
		t.Run(c.name, func(t *testing.T) { c.check(t, open) })
	}
}

type policyCheck struct {
	name  string
	check func(testing.TB, OpenPolicies)
}

func policyChecks() []policyCheck {
	return []policyCheck{
		{"an approval goes before the session, the session before the default", precedence},
		{"an unreadable choice is no wider policy", unreadable},
		{"a mode that is none is refused", noMode},
		{"a session's workspace goes before the deployment's", sessionRoot},
		{"a workspace is followed as the kernel follows it", asTheKernel},
		{"a workspace that is no directory is refused", noDirectory},
		{"a cancelled call gets no policy", cancelled},
	}
}

// overrides says what one session chose.
type overrides struct {
	session string
	mode    sandbox.Mode
	err     error
}

func (o overrides) SandboxMode(_ context.Context, id string) (sandbox.Mode, bool, error) {
	return o.mode, id == o.session, o.err
}

func resolve(t testing.TB, p sandbox.Policies, s sandbox.Session, approved sandbox.Mode) sandbox.Policy {
	t.Helper()
	got, err := p.Resolve(t.Context(), s, approved)
	if err != nil {
		t.Fatalf("resolve: %v", err)
	}
	return got
}

func precedence(t testing.TB, open OpenPolicies) {
	root := t.TempDir()
	p := open(t, sandbox.WorkspaceWrite, root, overrides{session: "s", mode: sandbox.ReadOnly})
	if got := p.Default(); got != sandbox.WorkspaceWrite {
		t.Errorf("default: got %q", got)
	}
	for _, c := range []struct {
		name     string
		session  sandbox.Session
		approved sandbox.Mode
		want     sandbox.Mode
	}{
		{"nothing said", sandbox.Session{}, "", sandbox.WorkspaceWrite},
		{"a session that chose", sandbox.Session{ID: "s"}, "", sandbox.ReadOnly},
		{"a session that did not", sandbox.Session{ID: "other"}, "", sandbox.WorkspaceWrite},
		{"an approval over the default", sandbox.Session{}, sandbox.ReadOnly, sandbox.ReadOnly},
		{"an approval over a session", sandbox.Session{ID: "s"}, sandbox.DangerFullAccess, sandbox.DangerFullAccess},
	} {
		if got := resolve(t, p, c.session, c.approved); got.Mode != c.want || got.SessionID != c.session.ID {
			t.Errorf("%s: got %+v, want mode %q", c.name, got, c.want)
		}
	}
	// An approval is for one call.
	if got := resolve(t, p, sandbox.Session{ID: "s"}, ""); got.Mode != sandbox.ReadOnly {
		t.Errorf("after an approval: got %q", got.Mode)
	}
	if got := resolve(t, open(t, sandbox.ReadOnly, root, nil), sandbox.Session{ID: "s"}, ""); got.Mode != sandbox.ReadOnly {
		t.Errorf("without overrides: got %q", got.Mode)
	}
}

func unreadable(t testing.TB, open OpenPolicies) {
	broken := errors.New("the log is damaged")
	p := open(t, sandbox.DangerFullAccess, t.TempDir(), overrides{session: "s", mode: sandbox.DangerFullAccess, err: broken})
	if got, err := p.Resolve(t.Context(), sandbox.Session{ID: "s"}, ""); !errors.Is(err, broken) {
		t.Errorf("got %+v, %v, want the error", got, err)
	}
}

func noMode(t testing.TB, open OpenPolicies) {
	p := open(t, sandbox.ReadOnly, t.TempDir(), overrides{session: "s", mode: "anything"})
	if got, err := p.Resolve(t.Context(), sandbox.Session{}, "root"); err == nil {
		t.Errorf("approved: got %+v, want an error", got)
	}
	if got, err := p.Resolve(t.Context(), sandbox.Session{ID: "s"}, ""); err == nil {
		t.Errorf("chosen: got %+v, want an error", got)
	}
}

func sessionRoot(t testing.TB, open OpenPolicies) {
	mine, theirs := realTemp(t), realTemp(t)
	p := open(t, sandbox.ReadOnly, theirs, nil)
	if got := resolve(t, p, sandbox.Session{ID: "s", CWD: mine}, "").WorkspaceRoot; got != mine {
		t.Errorf("got %s, want the session's %s", got, mine)
	}
	if got := resolve(t, p, sandbox.Session{ID: "s"}, "").WorkspaceRoot; got != theirs {
		t.Errorf("got %s, want the deployment's %s", got, theirs)
	}
}

func asTheKernel(t testing.TB, open OpenPolicies) {
	dir := realTemp(t)
	for _, d := range []string{"elsewhere/deep", "elsewhere/ws", "ws"} {
		must(t, os.MkdirAll(filepath.Join(dir, d), 0o700))
	}
	must(t, os.Symlink("elsewhere/deep", filepath.Join(dir, "link")))
	want := filepath.Join(dir, "elsewhere/ws")
	spelled := dir + "/link/../ws" // which a cleaning of the text would make dir/ws
	if got := resolve(t, open(t, sandbox.ReadOnly, spelled, nil), sandbox.Session{}, "").WorkspaceRoot; got != want {
		t.Errorf("deployment: got %s, want %s", got, want)
	}
	if got := resolve(t, open(t, sandbox.ReadOnly, dir, nil), sandbox.Session{CWD: spelled}, "").WorkspaceRoot; got != want {
		t.Errorf("session: got %s, want %s", got, want)
	}
}

func noDirectory(t testing.TB, open OpenPolicies) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	for _, name := range []string{"file", "missing", "file/below"} {
		if got, err := open(t, sandbox.ReadOnly, filepath.Join(dir, name), nil).Resolve(t.Context(), sandbox.Session{}, ""); err == nil {
			t.Errorf("%s: got %+v, want an error", name, got)
		}
	}
}

func cancelled(t testing.TB, open OpenPolicies) {
	cause := errors.New("changed my mind")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := open(t, sandbox.ReadOnly, t.TempDir(), nil).Resolve(ctx, sandbox.Session{}, ""); !errors.Is(err, cause) {
		t.Errorf("got %v, want the cause", err)
	}
}

func realTemp(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	return dir
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
