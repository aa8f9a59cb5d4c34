package jobslocal_test

import (
	"log/slog"
	"testing"

	"dsh/internal/testkit"
	"dsh/modules/jobs/jobstest"
	"dsh/modules/jobslocal"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func made(t testing.TB, limit int) jobslocal.Result {
	t.Helper()
	r, err := jobslocal.New(jobslocal.Params{
		Config: jobslocal.Config{MaxConcurrentJobsPerOwner: limit}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRegistryKeepsTheContract(t *testing.T) {
	t.Parallel()
	jobstest.Run(t, func(t testing.TB) jobstest.Subject {
		r := made(t, jobstest.Limit)
		return jobstest.Subject{Registry: r.Registry, Stop: r.Runner.Stop}
	})
}
