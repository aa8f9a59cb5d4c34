package headless_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"dsh/composetest"
	"dsh/internal/testkit"
	"dsh/modules/agent"
	"dsh/modules/jobs"
	"dsh/modules/tools"
)

func TestAJobThatIsAliveAtTheEndIsEndedAndNamed(t *testing.T) {
	argument := own("30424")
	r := start(t, `
- tools: [{name: bash, arguments: {command: "setsid sleep `+argument+` & sleep `+argument+`", description: test, run_in_background: true}}]
- expect: {lastToolResult: "^started background job bash-1$"}
  text: It runs.
`)
	var l lines
	report := run(t.Context(), t, r, l.task("serve", t.TempDir()))
	if report.Outcome.Text != "It runs." || agent.ExitStatus(report, nil) != agent.ExitCompleted {
		t.Errorf("got %+v", report.Outcome)
	}
	if len(report.Ended) != 1 || len(l.warnings) != 1 || !strings.HasPrefix(l.warnings[0], "ended the background job bash-1 (setsid sleep "+argument) {
		t.Errorf("ended %+v, warnings %q", report.Ended, l.warnings)
	}
	if left := testkit.Processes("sleep", argument); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func TestTheEndOfAJobReachesTheNextStep(t *testing.T) {
	r := start(t, `
- tools: [{name: bash, arguments: {command: "until test -e go; do sleep 0.01; done; exit 3", description: test, run_in_background: true}}]
- tools: [{name: bash, arguments: {command: "touch go", description: test}}]
- tools: [{name: job_output, arguments: {job_id: bash-1}}]
- text: It is built.
`)
	registry := composetest.Value[jobs.Registry](t, r)
	composetest.Value[tools.Registry](t, r).AfterExecute(func(_ context.Context, e tools.Execution, result tools.Result) (tools.Result, error) {
		if strings.Contains(string(e.Arguments), "touch go") {
			if err := ended(registry, e.Session.ID, "bash-1"); err != nil {
				t.Error(err)
			}
		}
		return result, nil
	})
	var l lines
	report := run(t.Context(), t, r, l.task("build", t.TempDir()))
	if report.Outcome.Text != "It is built." || len(report.Ended) != 0 || len(l.warnings) != 0 {
		t.Errorf("got %+v, warnings %q", report, l.warnings)
	}
	got := strings.Join(types(t, r, report.SessionID), " ")
	want := "turn/start step/start user/message user/message assistant/message tool/call tool/result step/end " +
		"step/start assistant/message tool/call tool/result step/end " +
		"step/start user/message assistant/message tool/call tool/result step/end " + // the notice
		"step/start assistant/message step/end turn/end"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// ended waits until a job has ended, without having its end reported.
func ended(registry jobs.Registry, session, id string) error {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if j, err := registry.Find(session, id); err != nil || j.Status.Terminal() {
			return err
		}
	}
	return errors.New("job " + id + " has not ended")
}
