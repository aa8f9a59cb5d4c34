package headless_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dsh/bundles/base"
	"dsh/bundles/headless"
	"dsh/compose"
	"dsh/composetest"
	"dsh/internal/testkit"
	"dsh/modules/agent"
	"dsh/modules/llm"
	"dsh/modules/session"
)

// scripted returns the bundles with a model that plays script, and commands that run unconfined unless a later option
// says otherwise.
func scripted(t testing.TB, script string, more ...composetest.Option) []composetest.Option {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	return append([]composetest.Option{
		composetest.With(base.Bundle(), headless.Bundle()),
		composetest.Patch("- {id: llm, disabled: true}\n- {id: llm-script, disabled: false}\n"),
		composetest.Set("llm-script.file='" + file + "'"),
		composetest.Set("session-persistence-jsonl.root='" + filepath.Join(t.TempDir(), "sessions") + "'"),
		composetest.Set("sandbox-policy.mode=danger-full-access"),
	}, more...)
}

func start(t testing.TB, script string, more ...composetest.Option) *compose.Running {
	t.Helper()
	testkit.NeedProgram(t, "bash")
	return composetest.Start(t, scripted(t, script, more...)...)
}

// lines collects what a person would read.
type lines struct{ progress, warnings []string }

func (l *lines) task(text, cwd string) agent.Task {
	return agent.Task{
		Text: text, CWD: cwd,
		Progress: func(s string) { l.progress = append(l.progress, s) },
		Warn:     func(s string) { l.warnings = append(l.warnings, s) },
	}
}

func run(ctx context.Context, t testing.TB, r *compose.Running, task agent.Task) agent.Report {
	t.Helper()
	report, err := composetest.Value[agent.Runner](t, r).Run(ctx, task)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// types returns the types of a stored session's events.
func types(t testing.TB, r *compose.Running, id string) []string {
	t.Helper()
	log, err := composetest.Value[session.Store](t, r).Read(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range log.Events {
		all = append(all, string(e.Data.Type()))
	}
	return all
}

const oneCall = `
- text: I will look.
  tools: [{name: bash, arguments: {command: "echo hi; false", description: test}}]
- expect: {lastToolResult: "^hi\n\\[exit code: 1\\]$"}
  text: It says hi.
`

func TestATaskIsDoneAndLogged(t *testing.T) {
	r := start(t, oneCall)
	var l lines
	report := run(t.Context(), t, r, l.task("say hi", t.TempDir()))
	if report.Outcome.Text != "It says hi." || agent.ExitStatus(report, nil) != agent.ExitCompleted {
		t.Errorf("got %+v", report)
	}
	// What the model is told comes after what it was asked, and only once.
	want := "turn/start step/start user/message user/message assistant/message tool/call tool/result step/end " +
		"step/start assistant/message step/end turn/end"
	if got := strings.Join(types(t, r, report.SessionID), " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if len(l.progress) != 2 || l.progress[0] != "session "+report.SessionID || !strings.HasSuffix(l.progress[1], "s bash echo hi; false [exit code: 1]") {
		t.Errorf("progress %q", l.progress)
	}
	if len(l.warnings) > 0 {
		t.Errorf("warnings %q", l.warnings)
	}
}

func TestTheModelIsToldByEachRowThatHasSomethingToSay(t *testing.T) {
	r := start(t, "[]")
	cwd := t.TempDir()
	view := agent.View{Session: session.Header{ID: "session-1", CWD: cwd}, Target: llm.Target{Model: "m"}}
	a, err := composetest.Value[agent.Prompt](t, r).Assemble(t.Context(), view)
	if err != nil {
		t.Fatal(err)
	}
	wantSystem := "You are an AI agent powered by DeepSeek Harness.\n\n" +
		"You are a coding agent powered by the m model. Your working directory is " + cwd + ".\n\n" +
		"Check the [exit code: N] marker on every bash result; investigate failures before moving on."
	if !strings.HasPrefix(a.System, wantSystem) {
		t.Errorf("the system prompt is %q", a.System)
	}
	if !strings.HasPrefix(a.Contexts, "Current DSH file policy: danger-full-access.") {
		t.Errorf("the contexts are %q", a.Contexts)
	}
}

func TestAResumedSessionGoesOn(t *testing.T) {
	r := start(t, "- text: one\n- text: two\n")
	var l lines
	task := l.task("first", t.TempDir())
	first := run(t.Context(), t, r, task)
	task.Text, task.Resume = "second", first.SessionID
	second := run(t.Context(), t, r, task)
	if second.SessionID != first.SessionID || second.Outcome.Turn != 2 || second.Outcome.Text != "two" {
		t.Errorf("got %+v", second)
	}
}

func TestATaskThatCannotBeOneIsRefused(t *testing.T) {
	r := start(t, "- text: no\n")
	runner := composetest.Value[agent.Runner](t, r)
	for _, task := range []agent.Task{{Text: " \n"}, {Text: "x", Resume: "session-nowhere"}} {
		report, err := runner.Run(t.Context(), task)
		if agent.ExitStatus(report, err) != agent.ExitUsage {
			t.Errorf("%+v: got %v", task, err)
		}
	}
}

func TestWhatAModelWritesDoesNotDrawOnTheTerminal(t *testing.T) {
	r := start(t, `
- tools: [{name: bash, arguments: {command: "echo '\x1b[2J\u202e'\ntrue", description: test}}]
- text: done
`)
	var l lines
	run(t.Context(), t, r, l.task("draw", t.TempDir()))
	if len(l.progress) != 2 || !strings.HasSuffix(l.progress[1], `s bash echo '\u001b[2J\u202e'\ntrue`) {
		t.Errorf("progress %q", l.progress)
	}
}

// TestTheDemonstrationEndsGreen runs what the README shows, on a copy.
func TestTheDemonstrationEndsGreen(t *testing.T) {
	testkit.NeedProgram(t, "go")
	workspace := t.TempDir()
	if err := os.CopyFS(filepath.Join(workspace, "examples", "broken"), os.DirFS("../../examples/broken")); err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("../../examples/fix-test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, string(script))
	var l lines
	report := run(t.Context(), t, r, l.task("fix the failing test", workspace))
	if report.Outcome.Reason.Kind != session.EndCompleted || !strings.HasPrefix(report.Outcome.Text, "The test is fixed.") {
		t.Errorf("got %+v", report.Outcome)
	}
	if len(l.progress) != 5 {
		t.Errorf("progress %q", l.progress)
	}
}

func TestTheBundleIsAlsoOneFxApp(t *testing.T) {
	composetest.PlainFx(t, scripted(t, "- text: x\n")...)
}
