package tooljobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"dsh/internal/testkit"
	"dsh/modules/jobs"
	"dsh/modules/jobs/jobstest"
	"dsh/modules/jobslocal"
	"dsh/modules/tooljobs"
	"dsh/modules/tools"
	"dsh/modules/toolslocal"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// mounted is the tools over a registry of jobs.
type mounted struct {
	testing.TB
	jobs  jobs.Registry
	tools tools.Registry
	stop  func()
}

func mount(t testing.TB, c tooljobs.Config) *mounted {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	held, err := jobslocal.New(jobslocal.Params{Config: jobslocal.DefaultConfig(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	registry := toolslocal.New(toolslocal.Params{Log: log}).Registry
	made, err := tooljobs.New(tooljobs.Params{Config: c, Jobs: held.Registry, Tools: registry})
	if err != nil {
		t.Fatal(err)
	}
	if err := made.Runner.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	m := &mounted{TB: t, jobs: held.Registry, tools: registry}
	m.stop = func() {
		if err := made.Runner.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if left := registry.Definitions(); len(left) > 0 {
			t.Errorf("%d tools are left", len(left))
		}
	}
	t.Cleanup(func() {
		m.stop()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := held.Runner.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return m
}

// work is work of a job that ends when it is cancelled.
func work() *jobstest.Work {
	w := jobstest.NewWork()
	w.OnCancel = func(string) error {
		w.End(jobs.Killed, "signal: SIGTERM")
		return nil
	}
	return w
}

func (m *mounted) start(owner string, w *jobstest.Work, edit ...func(*jobs.Spec)) jobs.Snapshot {
	m.Helper()
	s := jobs.Spec{Kind: "bash", Label: "make test", Owner: owner, Run: w.Run()}
	for _, e := range edit {
		e(&s)
	}
	j, err := m.jobs.Start(m.Context(), s)
	if err != nil {
		m.Fatal(err)
	}
	return j
}

func (m *mounted) ends(session, id string) {
	m.Helper()
	testkit.Eventually(m.TB, 20*time.Second, "the job has ended", func() bool {
		j, err := m.jobs.Find(session, id)
		return err != nil || j.Status.Terminal()
	})
}

func (m *mounted) call(session, tool, arguments string) tools.Result {
	e := tools.Execution{CallID: "call-1", Name: tool, Arguments: json.RawMessage(arguments)}
	if session != "" {
		e.Session = &tools.SessionRef{ID: session, CWD: "/"}
	}
	return m.tools.Execute(m.Context(), e)
}

func (m *mounted) want(session, tool, arguments, content string) {
	m.Helper()
	if r := m.call(session, tool, arguments); r.Content != content {
		m.Errorf("%s(%s):\ngot  %q\nwant %q", tool, arguments, r.Content, content)
	}
}

func (m *mounted) wantError(session, tool, arguments, code, message string) {
	m.Helper()
	r := m.call(session, tool, arguments)
	if r.Error == nil || r.Error.Code != code || r.Error.Message != message {
		m.Errorf("%s(%s):\ngot  %+v, %q\nwant %s %q", tool, arguments, r.Error, r.Content, code, message)
	}
}

const id = `{"job_id":"bash-1"}`

func TestTextsOfAJob(t *testing.T) {
	t.Parallel()
	m := mount(t, tooljobs.DefaultConfig())
	m.want("s", "job_list", `{}`, "(no background jobs)")
	w := work()
	m.start("s", w, func(s *jobs.Spec) { s.Label = "cd x\nmake" })
	m.want("s", "job_output", id, "(no new output)\n[status: running]")
	w.Write("one\n")
	m.want("s", "job_output", id, "one\n[status: running]")
	w.Write("two")
	w.Say("half of it")
	m.want("s", "job_output", id, "two\n[status: running, half of it]")
	w.Write("progress\n")
	m.want("s", "job_list", `{}`, `bash-1 [bash] running — cd x\nmake`)
	m.want("s", "job_kill", `{"job_id":"bash-1","reason":"enough"}`, "requested cancellation of job bash-1")
	m.ends("s", "bash-1")
	m.want("s", "job_output", id, "progress\n[status: killed, signal: SIGTERM]")
	m.want("s", "job_output", id, "(no new output)\n[status: killed, signal: SIGTERM]")
	m.want("s", "job_kill", id, "job bash-1 had already finished [status: killed, signal: SIGTERM]")
	m.want("s", "job_list", `{}`, `bash-1 [bash] killed — cd x\nmake`)
	if got := w.Reasons(); len(got) != 1 || got[0] != "enough" {
		t.Errorf("cancelled with %q", got)
	}
	if n := m.jobs.TakeNotices("s"); len(n) > 0 {
		t.Errorf("%d notices of a job that the model killed", len(n))
	}
}

func TestValuesOfAJob(t *testing.T) {
	t.Parallel()
	m := mount(t, tooljobs.DefaultConfig())
	w := work()
	w.Write("out")
	j := m.start("", w)
	w.End(jobs.Completed, "exit code: 0")
	m.ends("", j.ID)
	j, err := m.jobs.Find("", j.ID)
	if err != nil {
		t.Fatal(err)
	}
	snapshot := fmt.Sprintf(`{"id":"bash-1","kind":"bash","label":"make test","status":"completed","detail":"exit code: 0","startedAt":%d,"finishedAt":%d}`,
		j.StartedAt.UnixMilli(), j.FinishedAt.UnixMilli())
	for tool, want := range map[string]string{
		"job_output": `{"text":"out","job":` + snapshot + `}`,
		"job_list":   `{"jobs":[` + snapshot + `]}`,
		"job_kill":   `{"alreadyFinished":true,"job":` + snapshot + `}`,
	} {
		if got := m.call("", tool, id).Value; string(got) != want {
			t.Errorf("%s:\ngot  %s\nwant %s", tool, got, want)
		}
	}
}

func TestWrongArgumentsAreNamed(t *testing.T) {
	t.Parallel()
	m := mount(t, tooljobs.DefaultConfig())
	m.start("s", work())
	m.start("other", work())
	for _, tool := range []string{"job_output", "job_kill"} {
		m.wantError("s", tool, `{"job_id":""}`, tools.CodeInvalidArgs, `invalid job_id: expected a non-empty string, got ""`)
		m.wantError("s", tool, `{"job_id":" "}`, tools.CodeInvalidArgs, `invalid job_id: expected a non-empty string, got " "`)
		m.wantError("s", tool, `{}`, tools.CodeInvalidArgs, `invalid arguments: missing required property "job_id"`)
		m.wantError("s", tool, `{"job_id":"bash-999"}`, jobs.CodeUnknown, "unknown job bash-999 (known jobs: bash-1)")
		m.wantError("s", tool, `{"job_id":"../x"}`, jobs.CodeUnknown, "unknown job ../x (known jobs: bash-1)")
		m.wantError("s", tool, `{"job_id":"bash-2"}`, jobs.CodeUnknown, "job bash-2 belongs to another session")
		m.wantError("", tool, `{"job_id":"bash-2"}`, jobs.CodeUnknown, "job bash-2 belongs to another session")
	}
	for _, ms := range []string{"0", "-1", "-0.5"} {
		m.wantError("s", "job_output", `{"job_id":"bash-1","wait":true,"timeout_ms":`+ms+`}`, tools.CodeInvalidArgs,
			"invalid wait timeout: expected a positive number of milliseconds, got "+ms)
	}
}

func TestWaiting(t *testing.T) {
	t.Parallel()
	m := mount(t, tooljobs.Config{WaitTimeoutMs: 20, MaxWaitTimeoutMs: 40})
	w := work()
	m.start("s", w)
	w.Write("out\n")
	m.want("s", "job_output", `{"job_id":"bash-1","wait":true}`, "out\n[status: running]")
	for _, ms := range []string{"1e308", "0.001", "40.5"} {
		m.want("s", "job_output", `{"job_id":"bash-1","wait":true,"timeout_ms":`+ms+`}`, "(no new output)\n[status: running]")
	}
	m.want("s", "job_output", `{"job_id":"bash-1","timeout_ms":-1}`, "(no new output)\n[status: running]")

	patient := mount(t, tooljobs.DefaultConfig())
	w = work()
	patient.start("s", w)
	time.AfterFunc(30*time.Millisecond, func() {
		w.Write("late\n")
		w.End(jobs.Completed, "exit code: 0")
	})
	patient.want("s", "job_output", `{"job_id":"bash-1","wait":true}`, "late\n[status: completed, exit code: 0]")
	if n := patient.jobs.TakeNotices("s"); len(n) > 0 {
		t.Error("a notice of what was waited for")
	}
}

func TestAWaitThatIsCancelledReportsNothing(t *testing.T) {
	t.Parallel()
	m := mount(t, tooljobs.DefaultConfig())
	w := work()
	m.start("s", w)
	w.Write("kept\n")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	r := m.tools.Execute(ctx, tools.Execution{
		Name: "job_output", Arguments: json.RawMessage(`{"job_id":"bash-1","wait":true}`), Session: &tools.SessionRef{ID: "s"},
	})
	if r.Error == nil || r.Error.Code != tools.CodeAborted {
		t.Fatalf("got %q, %+v", r.Content, r.Error)
	}
	w.End(jobs.Completed, "exit code: 0")
	m.ends("s", "bash-1")
	if n := m.jobs.TakeNotices("s"); len(n) != 1 {
		t.Errorf("%d notices, want one", len(n))
	}
	m.want("s", "job_output", id, "kept\n[status: completed, exit code: 0]")
}

func TestTextsStayWithinTheLimitOfTheJob(t *testing.T) {
	t.Parallel()
	m := mount(t, tooljobs.DefaultConfig())
	w := work()
	m.start("s", w, func(s *jobs.Spec) { s.OutputLimitBytes = 60 })
	w.Write("short\n")
	m.want("s", "job_output", id, "short\n[status: running]")
	w.Write(strings.Repeat("ä", 50))
	m.want("s", "job_output", id, strings.Repeat("ä", 11)+"\n[output truncated]\n[status: running]")

	tiny := work()
	m.start("s", tiny, func(s *jobs.Spec) { s.OutputLimitBytes = 10 })
	tiny.Write("something long\n")
	m.want("s", "job_output", `{"job_id":"bash-2"}`, ": running]")
	m.want("s", "job_kill", `{"job_id":"bash-2"}`, "truncated]")

	undo := m.tools.BeforeExecute(func(context.Context, tools.Execution) (tools.Decision, error) {
		return tools.Decision{Verdict: tools.Deny, Reason: strings.Repeat("no ", 40)}, nil
	})
	defer undo()
	m.want("s", "job_kill", id, ("Error: " + strings.Repeat("no ", 40))[:60-len("\n[result truncated]")]+"\n[result truncated]")
	if r := m.call("other", "job_kill", id); len(r.Content) < 100 {
		t.Errorf("a session that cannot see the job got %q", r.Content)
	}
}

func TestWithoutTheToolsNoJobStarts(t *testing.T) {
	t.Parallel()
	m := mount(t, tooljobs.DefaultConfig())
	m.stop()
	_, err := m.jobs.Start(t.Context(), jobs.Spec{Kind: "bash", Label: "x", Run: work().Run()})
	if !errors.Is(err, jobs.ErrNoController) {
		t.Errorf("error %v, want ErrNoController", err)
	}
}

func TestSettingsThatCannotWork(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]tooljobs.Config{
		"waitTimeoutMs must be positive, got 0\nmaxWaitTimeoutMs must be positive, got -1": {MaxWaitTimeoutMs: -1},
		"waitTimeoutMs (50) exceeds maxWaitTimeoutMs (40)":                                 {WaitTimeoutMs: 50, MaxWaitTimeoutMs: 40},
		"maxWaitTimeoutMs must be at most 9223372036854, got 9223372036855":                {WaitTimeoutMs: 1, MaxWaitTimeoutMs: 9223372036855},
	} {
		if err := c.Validate(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := tooljobs.DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
}
