package tooljobs_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dsh/composetest"
	"dsh/internal/testkit"
	"dsh/module"
	"dsh/modules/bashlocal"
	"dsh/modules/jobs"
	"dsh/modules/jobslocal"
	"dsh/modules/shellenv"
	"dsh/modules/subprocesslocal"
	"dsh/modules/toolbash"
	"dsh/modules/tooljobs"
	"dsh/modules/tools"
	"dsh/modules/toolslocal"
)

// world is a composition with everything from the process up to the tools.
type world struct {
	testing.TB
	tools tools.Registry
	jobs  jobs.Registry
	dir   string
	stop  func() error
}

func bundle(graceMs int) module.Bundle {
	return module.Bundle{
		Name: "jobs",
		Modules: []module.Module{
			subprocesslocal.Module(), shellenv.Module(), toolslocal.Module(), bashlocal.Module(), jobslocal.Module(), tooljobs.Module(),
			toolbash.Module(),
		},
		Patch: fmt.Appendf(nil, `
- insert:
    - {id: subprocess, name: subprocess-local}
    - {id: shell-env, name: shell-env}
    - {id: tools, name: tools-local}
    - {id: bash-local, name: bash-local, config: {graceMs: %d, maxSpillBytes: 8388608}}
    - {id: jobs, name: '@deepseek-ai/dsh-jobs-local'}
    - {id: tool-jobs, name: '@deepseek-ai/dsh-tool-jobs'}
    - {id: tool-bash, name: tool-bash}
`, graceMs),
	}
}

func composed(t testing.TB, graceMs int) *world {
	t.Helper()
	testkit.NeedProgram(t, "bash")
	r := composetest.Start(t, composetest.With(bundle(graceMs)))
	return &world{
		TB: t, tools: composetest.Value[tools.Registry](t, r), jobs: composetest.Value[jobs.Registry](t, r), dir: t.TempDir(), stop: r.Stop,
	}
}

const owner = "session-1"

func (w *world) call(tool string, arguments map[string]any) tools.Result {
	w.Helper()
	raw, err := json.Marshal(arguments)
	if err != nil {
		w.Fatal(err)
	}
	return w.tools.Execute(w.Context(), tools.Execution{
		CallID: "call-1", Name: tool, Arguments: raw, Session: &tools.SessionRef{ID: owner, CWD: w.dir},
	})
}

// begin starts a command in the background and returns the id of its job.
func (w *world) begin(command string) string {
	w.Helper()
	r := w.call("bash", map[string]any{"command": command, "description": "Do what the test wants", "run_in_background": true})
	id, ok := strings.CutPrefix(r.Content, "started background job ")
	if !ok || r.Error != nil || string(r.Value) != `{"kind":"background","jobId":"`+id+`"}` {
		w.Fatalf("got %q, %s", r.Content, r.Value)
	}
	return id
}

func (w *world) output(id string) string {
	w.Helper()
	return w.call("job_output", map[string]any{"job_id": id}).Content
}

func (w *world) kill(id string) {
	w.Helper()
	if got := w.call("job_kill", map[string]any{"job_id": id}).Content; got != "requested cancellation of job "+id {
		w.Fatalf("job_kill: got %q", got)
	}
}

func (w *world) status(id string) jobs.Snapshot {
	w.Helper()
	j, err := w.jobs.Find(owner, id)
	if err != nil {
		w.Fatal(err)
	}
	return j
}

func (w *world) ends(id string) jobs.Snapshot {
	w.Helper()
	testkit.Eventually(w.TB, 30*time.Second, "the job has ended", func() bool { return w.status(id).Status.Terminal() })
	return w.status(id)
}

func (w *world) exists(name string) bool {
	_, err := os.Stat(filepath.Join(w.dir, name))
	return err == nil
}

func (w *world) runs(n int, argv ...string) {
	w.Helper()
	testkit.Eventually(w.TB, 30*time.Second, fmt.Sprintf("%d times %q", n, argv), func() bool { return len(testkit.Processes(argv...)) == n })
}

func (w *world) gone(argv ...string) {
	w.Helper()
	if left := testkit.Processes(argv...); len(left) > 0 {
		w.Errorf("left: %v", left)
	}
}

func TestAKilledJobLeavesNoProcess(t *testing.T) {
	t.Parallel()
	w := composed(t, 2000)
	id := w.begin("echo so far; (setsid sleep 41981 &); sleep 41981")
	w.runs(2, "sleep", "41981")
	begin := time.Now()
	w.kill(id)
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("job_kill took %v", took)
	}
	if j := w.ends(id); j.Status != jobs.Killed || j.Detail != "signal: SIGTERM" {
		t.Errorf("the job is %s, %s", j.Status, j.Detail)
	}
	w.gone("sleep", "41981")
	if got := w.output(id); got != "so far\n[status: killed, signal: SIGTERM]" {
		t.Errorf("got %q", got)
	}
	if got := w.output(id); got != "(no new output)\n[status: killed, signal: SIGTERM]" {
		t.Errorf("once more: got %q", got)
	}
}

func TestAJobIsNotOverBeforeItsProcessesAre(t *testing.T) {
	t.Parallel()
	w := composed(t, 2000)
	id := w.begin("nohup sleep 42001 >/dev/null 2>&1 & echo begun; exit 3")
	testkit.Eventually(t, 30*time.Second, "the command has exited", func() bool { return w.status(id).Detail != "" })
	if got := w.output(id); got != "begun\n[status: running, exit code: 3; its processes go on]" {
		t.Errorf("got %q", got)
	}
	w.runs(1, "sleep", "42001")
	w.kill(id)
	if j := w.ends(id); j.Status != jobs.Killed || j.Detail != "exit code: 3; its processes were killed" {
		t.Errorf("the job is %s, %s", j.Status, j.Detail)
	}
	w.gone("sleep", "42001")
}

func TestTheEndOfARealJobIsReportedOnce(t *testing.T) {
	t.Parallel()
	w := composed(t, 2000)
	const batch, rounds = 10, 50
	byOutput := 0
	for range rounds {
		told := map[string]int{}
		var ids []string
		for range batch {
			ids = append(ids, w.begin("echo fin"))
		}
		for _, id := range ids { // some have ended, some are just about to
			if strings.HasSuffix(w.output(id), "[status: completed, exit code: 0]") {
				told[id]++
				byOutput++
			}
		}
		for _, id := range ids {
			w.ends(id)
		}
		for _, n := range w.jobs.TakeNotices(owner) {
			told[n.Job.ID]++
		}
		for _, id := range ids {
			if told[id] != 1 {
				t.Fatalf("the end of %s was reported %d times", id, told[id])
			}
		}
	}
	t.Logf("of %d ends, job_output reported %d", batch*rounds, byOutput)
}

func TestTheLimitRefusesBeforeAnythingIsRun(t *testing.T) {
	t.Parallel()
	w := composed(t, 1500)
	stubborn := w.begin(`trap "" TERM; touch m1; while :; do sleep 42071; done`)
	for i := 2; i <= 10; i++ {
		w.begin(fmt.Sprintf("touch m%d; exec sleep 42072", i))
	}
	for i := 1; i <= 10; i++ {
		testkit.Eventually(t, 30*time.Second, "all ten run", func() bool { return w.exists(fmt.Sprintf("m%d", i)) })
	}
	refused := func(marker string) bool {
		r := w.call("bash", map[string]any{"command": "touch " + marker, "description": "Run", "run_in_background": true})
		if r.Error == nil {
			return false
		}
		want := "background job limit reached for this owner (limit: 10); use job_kill to stop an unneeded job, wait for it to finish, then retry"
		if r.Error.Code != jobs.CodeLimit || r.Error.Message != want {
			t.Fatalf("got %+v", r.Error)
		}
		return true
	}
	if !refused("m11") || w.exists("m11") {
		t.Fatal("the eleventh was run")
	}
	w.kill(stubborn)
	if !refused("m12") {
		t.Error("a job took the place of one that had not ended")
	}
	if j := w.ends(stubborn); j.Status != jobs.Killed || j.Detail != "signal: SIGKILL" {
		t.Errorf("the job is %s, %s", j.Status, j.Detail)
	}
	w.gone("sleep", "42071")
	if id := w.begin("true"); id != "bash-11" {
		t.Errorf("the next job is %s", id)
	}
	if w.exists("m11") || w.exists("m12") {
		t.Error("a refused command was run")
	}
}

func TestUnknownJobsAreNeverCompleted(t *testing.T) {
	t.Parallel()
	w := composed(t, 2000)
	id := w.begin("exec sleep 42081")
	for _, tool := range []string{"job_output", "job_kill"} {
		for _, unknown := range []string{"bash-999", "../x"} {
			if got, want := w.call(tool, map[string]any{"job_id": unknown}).Content, "Error: unknown job "+unknown+" (known jobs: "+id+")"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	}
}

func TestEndlessOutputDoesNotFillTheDisk(t *testing.T) {
	w := composed(t, 2000)
	const limit = 2 * 8388608
	home := os.Getenv("DSH_HOME")
	id := w.begin("yes | tee /dev/stderr")
	var most int64
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		most = max(most, size(home))
	}
	if most > limit || most == 0 {
		t.Errorf("the spill files had %d bytes, at most %d are allowed", most, limit)
	}
	text := w.output(id)
	if !strings.HasSuffix(text, "[some output was dropped from memory; full output: (unavailable)]\n[status: running]") || len(text) > 200_000 {
		t.Errorf("%d bytes, which end in %q", len(text), text[max(0, len(text)-200):])
	}
	w.kill(id)
	w.ends(id)
	if left := size(home); left > limit {
		t.Errorf("afterwards %d bytes are left", left)
	}
}

// size returns how much there is in the files below a directory.
func size(dir string) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if i, err := d.Info(); err == nil {
				sum += i.Size()
			}
		}
		return nil
	})
	return sum
}

func TestTheStopEndsStubbornJobsWithTheirGrace(t *testing.T) {
	t.Parallel()
	w := composed(t, 1500)
	for i := range 5 {
		w.begin(fmt.Sprintf(`trap "" TERM; touch r%d; while :; do sleep 42091; done`, i))
	}
	w.runs(5, "sleep", "42091")
	begin := time.Now()
	if err := w.stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > 9*time.Second {
		t.Errorf("the stop took %v with a grace of 1.5s", took)
	}
	w.gone("sleep", "42091")
	if n := w.jobs.TakeNotices(owner); len(n) > 0 {
		t.Errorf("%d notices of jobs that the stop ended", len(n))
	}
}

func TestAJobOutlivesTheCallThatStartedIt(t *testing.T) {
	t.Parallel()
	w := composed(t, 2000)
	id := w.begin("until [ -e go ]; do sleep 0.01; done; echo went; echo err >&2; exit 4")
	ended, undo := w.jobs.Watch(owner)
	defer undo()
	if err := os.WriteFile(filepath.Join(w.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("nobody was told of the end")
	}
	n := w.jobs.TakeNotices(owner)
	if len(n) != 1 || !strings.HasPrefix(n[0].Text(), "background job "+id+" (bash: until ") ||
		!strings.HasSuffix(n[0].Text(), ") finished [status: completed, exit code: 4]. Read its output with job_output.") {
		t.Fatalf("got %+v", n)
	}
	if got := w.output(id); got != "went\n[stderr]\nerr\n[status: completed, exit code: 4]" {
		t.Errorf("got %q", got)
	}
}
