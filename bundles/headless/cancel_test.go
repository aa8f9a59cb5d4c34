package headless_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dsh/bundles/base"
	"dsh/bundles/headless"
	"dsh/compose"
	"dsh/composetest"
	"dsh/internal/testkit"
	"dsh/module"
	"dsh/modules/agent"
	"dsh/modules/agent/agenttest"
	"dsh/modules/llm"
	"dsh/modules/session"
)

// tireless asks for a command until somebody says "go on". Each response takes it a moment.
type tireless struct{ command string }

func (m tireless) Target(context.Context, string) (llm.Target, error) {
	return llm.Target{Provider: "test", Model: "tireless"}, nil
}

func (m tireless) Generate(ctx context.Context, r llm.Request) (llm.Response, error) {
	said := llm.Response{Content: []llm.Block{{Type: llm.TextBlock, Text: "I will see."}}, Finish: llm.FinishStop}
	select {
	case <-time.After(2 * time.Millisecond):
	case <-ctx.Done():
		return said, &llm.Error{Code: llm.CodeAborted, Message: "aborted", Err: context.Cause(ctx)}
	}
	if r.Messages[len(r.Messages)-1].Role == llm.RoleUser && !slices.ContainsFunc(r.Messages, goesOn) {
		said.Finish = llm.FinishToolCalls
		said.Content = append(said.Content, agenttest.Call("call-1", "bash", fmt.Sprintf(`{"command":%q,"description":"test"}`, m.command)))
	}
	return said, nil
}

// unattended starts the bundles with a model that asks for command.
func unattended(t testing.TB, root, command string, more ...composetest.Option) *compose.Running {
	t.Helper()
	testkit.NeedProgram(t, "bash")
	model := module.Define(module.Spec[struct{}]{
		Name: "tireless", Summary: "a model for tests", Constructor: func() llm.Model { return tireless{command} },
	})
	return composetest.Start(t, append([]composetest.Option{
		composetest.With(base.Bundle(), headless.Bundle()),
		composetest.Replace("llm", model),
		composetest.Set("session-persistence-jsonl.root='" + root + "'"),
		composetest.Set("sandbox-policy.mode=danger-full-access"),
	}, more...)...)
}

// own returns a duration for sleep that no other run of these tests has.
func own(seconds string) string { return fmt.Sprintf("%s.%d", seconds, os.Getpid()) }

// stays is a command that leaves processes behind wherever it can, which have an argument of their own.
func stays(argument string) string {
	return "setsid sleep " + argument + " & sleep " + argument + " & echo up; wait"
}

// aborted makes a turn that ends with ctx, and then one that goes on from its log.
func aborted(ctx context.Context, t *testing.T, r *compose.Running, observe func(agent.Update)) session.Reason {
	t.Helper()
	store, a := composetest.Value[session.Store](t, r), composetest.Value[agent.Agent](t, r)
	s, err := store.Create(t.Context(), session.New{CWD: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	o, err := a.Turn(ctx, s, agent.Input{Messages: []llm.Message{llm.UserText("go")}, Observe: observe})
	if err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
	begun := len(s.Events()) > 0
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if !begun {
		return session.Reason{}
	}
	again, err := store.Open(t.Context(), s.Header().ID)
	if err != nil {
		t.Fatalf("the log does not resume: %v", err)
	}
	defer again.Close()
	if rec := again.Recovery(); rec != (session.Recovery{}) {
		t.Errorf("the log had to be repaired: %+v", rec)
	}
	next, err := a.Turn(t.Context(), again, agent.Input{Messages: []llm.Message{llm.UserText("go on")}})
	if err != nil || next.Turn != 2 || next.Reason.Kind != session.EndCompleted {
		t.Errorf("the next turn: %+v, %v", next, err)
	}
	return o.Reason
}

func goesOn(m llm.Message) bool { return m.Text() == "go on" }

func TestACancelAtEachEventLeavesALogThatResumesAndNoProcess(t *testing.T) {
	argument := own("30421")
	r := unattended(t, filepath.Join(t.TempDir(), "sessions"), stays(argument))
	for at := range 8 { // turn/start to tool/call; the command ends by nothing else
		ctx, cancel := context.WithCancel(t.Context())
		seen := 0
		reason := aborted(ctx, t, r, func(agent.Update) {
			if seen == min(at, 5) {
				if at < 6 {
					cancel()
				} else { // the command is being started, or runs
					time.AfterFunc(time.Duration(at-5)*20*time.Millisecond, cancel)
				}
			}
			seen++
		})
		cancel()
		if reason.Kind != session.EndAborted || reason.Abort.Kind != "user" {
			t.Errorf("at event %d: %+v", at, reason)
		}
		if left := testkit.Processes("sleep", argument); len(left) > 0 {
			t.Errorf("at event %d: left %v", at, left)
		}
	}
}

func TestACancelAtAnyMomentLeavesALogThatResumesAndNoProcess(t *testing.T) {
	argument := own("30422")
	r := unattended(t, filepath.Join(t.TempDir(), "sessions"), stays(argument))
	for i := range 15 {
		after := time.Duration(rand.Int64N(int64(30 * time.Millisecond)))
		ctx, cancel := context.WithTimeout(t.Context(), after)
		reason := aborted(ctx, t, r, nil)
		cancel()
		if reason.Kind != session.EndAborted && reason.Kind != "" { // "": it had not begun
			t.Errorf("run %d, after %v: %+v", i, after, reason)
		}
		if left := testkit.Processes("sleep", argument); len(left) > 0 {
			t.Errorf("run %d, after %v: left %v", i, after, left)
		}
	}
}

// victim names the directory in which this test binary is to run a task until it is killed, and victimSleeps how long the
// task's commands sleep.
const (
	victim       = "DSH_TEST_VICTIM"
	victimSleeps = "DSH_TEST_VICTIM_SLEEPS"
)

// TestVictim is the host of TestAHostThatIsKilledLeavesALogThatResumesAndNoProcess.
func TestVictim(t *testing.T) {
	dir := os.Getenv(victim)
	if dir == "" {
		return
	}
	r := unattended(t, filepath.Join(dir, "sessions"), "touch "+filepath.Join(dir, "up")+"; "+stays(os.Getenv(victimSleeps)))
	_, _ = composetest.Value[agent.Runner](t, r).Run(t.Context(), agent.Task{Text: "go", CWD: dir})
}

func TestAHostThatIsKilledLeavesALogThatResumesAndNoProcess(t *testing.T) {
	dir, argument := t.TempDir(), own("30423")
	host := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestVictim$")
	host.Env = append(os.Environ(), victim+"="+dir, victimSleeps+"="+argument, "TMPDIR="+t.TempDir()) // it cannot clean up
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 20*time.Second, "the tool runs", func() bool {
		_, err := os.Stat(filepath.Join(dir, "up"))
		return err == nil && len(testkit.Processes("sleep", argument)) == 2
	})
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait()
	testkit.Eventually(t, 20*time.Second, "nothing is left of the tool", func() bool {
		return len(testkit.Processes("sleep", argument)) == 0
	})
	entries, err := os.ReadDir(filepath.Join(dir, "sessions"))
	if err != nil || len(entries) != 1 {
		t.Fatalf("sessions: %v, %v", entries, err)
	}
	r := unattended(t, filepath.Join(dir, "sessions"), "exit 1")
	var l lines
	task := l.task("go on", "")
	task.Resume = entries[0].Name()
	if report := run(t.Context(), t, r, task); report.Outcome.Turn != 2 || report.Outcome.Reason.Kind != session.EndCompleted {
		t.Errorf("got %+v", report)
	}
	log, err := composetest.Value[session.Store](t, r).Read(t.Context(), task.Resume)
	if err != nil {
		t.Fatal(err)
	}
	codes := ""
	for _, e := range log.Events {
		if result, ok := e.Data.(*session.ToolResult); ok {
			codes += result.Error.Code
		}
		if end, ok := e.Data.(*session.TurnEnd); ok {
			codes += " " + string(end.Reason.Kind)
		}
	}
	if codes != session.CodeToolOutcomeUnknown+" interrupted completed" {
		t.Errorf("got %q", codes)
	}
	if len(l.warnings) != 1 || !strings.Contains(l.warnings[0], "closed as interrupted") {
		t.Errorf("warnings %q", l.warnings)
	}
}
