package jobs_test

import (
	"strings"
	"testing"

	"dsh/internal/testkit"
	"dsh/modules/jobs"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestNoticeTexts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 300)
	for _, c := range []struct {
		name  string
		label string
		limit int64
		want  string
	}{
		{"whole", "make test", 0, "background job bash-1 (bash: make test) finished [status: completed, exit code: 2]. Read its output with job_output."},
		{"exactly as long as it may be", "make test", 116, "background job bash-1 (bash: make test) finished [status: completed, exit code: 2]. Read its output with job_output."},
		{"cut", long, 90, "background job bash-1 (bash: " + strings.Repeat("ä", 12) + "\n[notice truncated]\nDone; job_output."},
		{"no room for the cut", long, 57, "background job bash-1\nDone; job_output."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := jobs.Notice{Job: jobs.Snapshot{
				ID: "bash-1", Kind: "bash", Label: c.label, Status: jobs.Completed, Detail: "exit code: 2", OutputLimitBytes: c.limit,
			}}
			if got := n.Text(); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestSummaryIsOneShortLine(t *testing.T) {
	t.Parallel()
	n := jobs.Notice{Job: jobs.Snapshot{Kind: "bash", Label: "cd x\nmake", Status: jobs.Killed}}
	if got, want := n.Summary(), "bash cd x make [status: killed]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	n.Job.Label = strings.Repeat("ä", 300)
	if got := n.Summary(); got != "bash "+strings.Repeat("ä", 115) {
		t.Errorf("got %q", got)
	}
}

func TestUnknownJobsAreNamedWithinBounds(t *testing.T) {
	t.Parallel()
	var many []string
	for range 30 {
		many = append(many, "bash-1")
	}
	for _, c := range []struct {
		err  jobs.UnknownError
		want string
	}{
		{jobs.UnknownError{ID: "../x"}, "unknown job ../x (no background jobs)"},
		{jobs.UnknownError{ID: "a\nb\xff", Known: many[:2]}, `unknown job "a\nb\xff" (known jobs: bash-1, bash-1)`},
		{jobs.UnknownError{ID: "x", Known: many}, "unknown job x (known jobs: ..., " + strings.Join(many[:20], ", ") + ")"},
		{jobs.UnknownError{ID: strings.Repeat("x", 5000)}, `unknown job "` + strings.Repeat("x", 80) + `"... (no background jobs)`},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}
