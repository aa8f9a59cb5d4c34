package jobstest

import (
	"slices"
	"testing"
	"time"

	"dsh/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func subject(broken defect) Subject {
	f := newFake(broken)
	return Subject{Registry: f, Stop: f.stop}
}

func TestSuitePassesWhoKeepsThePromises(t *testing.T) {
	Run(t, func(testing.TB) Subject { return subject("") })
}

func TestSuiteNoticesABrokenPromise(t *testing.T) {
	for broken, complaint := range complaints {
		t.Run(string(broken), func(t *testing.T) {
			t.Parallel()
			i := slices.IndexFunc(checks(), func(c check) bool { return c.name == complaint })
			if i < 0 {
				t.Fatalf("no check is called %q", complaint)
			}
			faults := testkit.Faults(t, func(tb testing.TB) {
				checks()[i].run(newSuite(tb, subject(broken), time.Second/2))
			})
			if len(faults) == 0 {
				t.Errorf("%q found nothing wrong", complaint)
			}
		})
	}
}
