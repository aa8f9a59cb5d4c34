package sessiontest

import (
	"testing"
	"time"

	"dsh/internal/testkit"
	"dsh/modules/session"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func newPlace(broken defect) func() session.Store {
	return (&place{broken: broken, logs: map[string]*memory{}}).open
}

func TestSuitePassesWhoKeepsThePromises(t *testing.T) {
	t.Parallel()
	Run(t, func(testing.TB) func() session.Store { return newPlace("") })
}

func TestSuiteNoticesABrokenPromise(t *testing.T) {
	t.Parallel()
	for _, broken := range []defect{
		storesEmpty, buffers, takesAll, storesRefused, aliases, growsHandedOut, unlocked, keepsLock, forgetsLive, keepsLive,
		writesClosed, overwrites, takesAnyID, takesAnyCWD, opensUnrepaired, repairsNow, repairsHidden, repairsUnstored, forgetsMode,
		listsUnordered, listsNoTask, ignoresCancel, skipsSeq, ignoresSummary, racy,
	} {
		t.Run(string(broken), func(t *testing.T) {
			t.Parallel()
			var noticed []string
			for _, c := range checks() {
				faults := testkit.Faults(t, func(tb testing.TB) {
					c.run(&suite{TB: tb, open: newPlace(broken), patience: time.Second})
				})
				if len(faults) > 0 {
					noticed = append(noticed, c.name)
				}
			}
			if len(noticed) == 0 {
				t.Fatalf("no check noticed a store that %s", broken)
			}
			t.Logf("noticed by %q", noticed)
		})
	}
}
