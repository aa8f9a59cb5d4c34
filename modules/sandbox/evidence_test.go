package sandbox_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"dsh/internal/testkit"
	"dsh/modules/sandbox"
	"dsh/modules/subprocess"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func exit(code int) subprocess.Outcome { return subprocess.Outcome{ExitCode: code} }

func TestHowARunEndedIsReadInThisOrder(t *testing.T) {
	t.Parallel()
	executed, not := func() bool { return true }, func() bool { return false }
	bwrap := sandbox.Evidence{Denials: []string{"Read-only file system"}}
	custom := sandbox.Evidence{Denials: []string{"permission denied"}, Ambiguous: true, Signatures: []string{"", "runner: "}}
	for _, c := range []struct {
		name     string
		evidence sandbox.Evidence
		status   func() bool
		stderr   []string
		outcome  subprocess.Outcome
		ended    bool
		want     sandbox.Verdict
	}{
		{"nothing", bwrap, executed, nil, exit(0), false, sandbox.Verdict{}},
		{"a refusal", bwrap, executed, []string{"touch: READ-ONLY FILE SYSTEM\n"}, exit(1), false, sandbox.Verdict{Denied: true}},
		{"a refusal in pieces", bwrap, executed, []string{"touch: Read", "-", "only file ", "", "system"}, exit(1), false, sandbox.Verdict{Denied: true}},
		{"a refusal at exit 0", bwrap, executed, []string{"Read-only file system"}, exit(0), false, sandbox.Verdict{}},
		{"a refusal and a signal", bwrap, executed, []string{"Read-only file system"}, subprocess.Outcome{ExitCode: -1, Signal: "SIGTERM"}, false, sandbox.Verdict{}},
		{"a refusal long ago", bwrap, executed, []string{"Read-only file system\n", strings.Repeat("x", 1<<20)}, exit(2), false, sandbox.Verdict{Denied: true}},
		{"a runner that failed", bwrap, not, []string{"\nbwrap: no\nmore: Read-only file system"}, exit(1), false, sandbox.Verdict{RunnerFailed: true, Reason: "bwrap: no"}},
		{"a runner that failed silently", bwrap, not, nil, exit(7), false, sandbox.Verdict{RunnerFailed: true, Reason: "the runner exited with status 7 and said nothing"}},
		{"a runner that we ended", bwrap, not, []string{"bwrap: no"}, exit(143), true, sandbox.Verdict{}},
		{"a runner that was killed", bwrap, not, nil, subprocess.Outcome{ExitCode: -1, Signal: "SIGKILL"}, false, sandbox.Verdict{}},
		{"a guess", custom, nil, []string{"cat: x: Permission denied"}, exit(1), false, sandbox.Verdict{Denied: true, DeniedBy: "text"}},
		{"a signature before a refusal", custom, nil, []string{"permission denied\nsome RUNNER", ": broken \nx"}, exit(1), false, sandbox.Verdict{RunnerFailed: true, Reason: "some RUNNER: broken"}},
		{"a signature on the last line", custom, nil, []string{"x\nrunner: broken"}, exit(1), false, sandbox.Verdict{RunnerFailed: true, Reason: "runner: broken"}},
		{"a signature over two lines", custom, nil, []string{"runner\n: broken"}, exit(1), false, sandbox.Verdict{}},
		{"a signature at exit 0", custom, nil, []string{"runner: broken"}, exit(0), false, sandbox.Verdict{}},
		{"a signature of what we ended", custom, nil, []string{"runner: broken"}, exit(1), true, sandbox.Verdict{}},
	} {
		released := 0
		c.evidence.Status, c.evidence.Release = c.status, func() { released++ }
		w := c.evidence.Watch()
		for _, p := range c.stderr {
			w.Stderr([]byte(p))
		}
		if got := w.End(c.outcome, c.ended); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
		if released == 0 {
			t.Errorf("%s: the evidence is not released", c.name)
		}
	}
}

func TestWhoseFaultASpawnIs(t *testing.T) {
	t.Parallel()
	e := sandbox.Evidence{Runner: "/usr/bin/bwrap"}
	for _, c := range []struct {
		name string
		err  error
		want bool
	}{
		{"the runner has gone", &subprocess.ExecutableError{Name: "/usr/bin/bwrap", Reason: "does not exist"}, true},
		{"the command has gone", &subprocess.ExecutableError{Name: "/usr/bin/bash", Reason: "does not exist"}, false},
		{"the hook failed", fmt.Errorf("start bash: %w", &sandbox.UnavailableError{Reason: "landlock: no"}), true},
		{"the runtime has no hook", &subprocess.InvalidError{Field: "onThread", Reason: "is not supported"}, true},
		{"the directory", &subprocess.DirError{Dir: "/x", Err: errors.New("no")}, false},
		{"a stop", subprocess.ErrStopped, false},
		{"nothing", nil, false},
	} {
		reason, got := e.RunnerRefused(c.err)
		if got != c.want || got && reason == "" {
			t.Errorf("%s: got %q, %v, want %v", c.name, reason, got, c.want)
		}
	}
}

func TestModesAreOrdered(t *testing.T) {
	t.Parallel()
	all := sandbox.Modes()
	for i, m := range all {
		for j, other := range all {
			if got := m.WiderThan(other); got != (i > j) {
				t.Errorf("%s wider than %s: %v", m, other, got)
			}
		}
		if sandbox.Mode("anything").WiderThan(m) {
			t.Errorf("what is no mode is wider than %s", m)
		}
	}
}

func TestTextsAreToTheLetter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want string }{
		{
			(&sandbox.UnavailableError{Mode: sandbox.ReadOnly, Reason: "bwrap: no"}).Error(),
			`sandbox mode "read-only" is requested but no sandbox backend is usable on this host; refusing to run the command unconfined. Install bubblewrap or run a Landlock-enforcing kernel (Linux), ensure sandbox-exec is usable (macOS), or ensure the ACL restricted-token runner can start (Windows) — otherwise switch the consumer to danger-full-access. Runner failure: bwrap: no`,
		},
		{sandbox.DeniedMarker(sandbox.WorkspaceWrite), `[sandbox: file access denied under workspace-write mode]`},
		{sandbox.EscalationHint("command"), `[sandbox: escalation available — retry this exact command once with sandbox_permissions (the narrowest wider mode that suffices) + justification; the approval prompt asks the user]`},
		{sandbox.RunnerFailedMarker(sandbox.ReadOnly), `[sandbox: the sandbox runner itself failed under read-only mode — the command did not run; this is a sandbox problem, not a command failure]`},
		{sandbox.EscalationReason(sandbox.WorkspaceWrite, "it must"), `escalate sandbox to workspace-write: it must`},
		{
			sandbox.Policy{Mode: sandbox.WorkspaceWrite, WorkspaceRoot: `/a "b" <c>`}.Prompt(),
			`Current DSH file policy: workspace-write. Any available operation enforced by the DSH file sandbox may modify files under the session workspace: "/a \"b\" <c>". Some platform temporary areas may also be writable.`,
		},
		{sandbox.Policy{Mode: sandbox.DangerFullAccess}.Prompt(), `Current DSH file policy: danger-full-access. The DSH file sandbox does not restrict file modifications by available operations.`},
		{sandbox.Policy{Mode: sandbox.ReadOnly}.Prompt(), `Current DSH file policy: read-only. Any available operation enforced by the DSH file sandbox cannot modify files in the standing mode. Do not refuse a required modification from this policy alone: try an available tool normally and follow any denial and escalation guidance it returns.`},
	} {
		if c.got != c.want {
			t.Errorf("got\n%s\nwant\n%s", c.got, c.want)
		}
	}
}
