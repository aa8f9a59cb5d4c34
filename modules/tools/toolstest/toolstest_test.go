package toolstest

import (
	"testing"

	"dsh/internal/testkit"
	"dsh/modules/tools"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestSuitePassesWhoKeepsThePromises(t *testing.T) {
	Run(t, func(testing.TB) tools.Registry { return &fake{} })
}

func TestSuiteNoticesABrokenPromise(t *testing.T) {
	for _, broken := range []defect{
		hooksBackwards, hooksAll, hooksEarly, afterBackwards, afterSkipsDenied, askAllows, unknownAllows, panics, abandons,
		succeedsLate, hidesFailure, runsCancelled, runsAfterCancel, trustsOutput, trustsValue, keepsRender, pardons,
		sharesArguments, losesCodes, undoByName, undoNothing, takesTwice, takesAnySchema, sorts, dropsUnnamed, takesLoss,
	} {
		t.Run(string(broken), func(t *testing.T) {
			t.Parallel()
			var noticed []string
			for _, c := range checks() {
				if len(testkit.Faults(t, func(tb testing.TB) { c.check(tb, &fake{broken: broken}) })) > 0 {
					noticed = append(noticed, c.name)
				}
			}
			if len(noticed) == 0 {
				t.Fatalf("no check noticed a registry that %s", broken)
			}
			t.Logf("noticed by %q", noticed)
		})
	}
}
