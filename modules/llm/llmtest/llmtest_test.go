package llmtest

import (
	"testing"
	"testing/synctest"
	"time"

	"dsh/internal/testkit"
	"dsh/modules/llm"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const testPatience = time.Second

func TestSuitePassesWhoKeepsThePromises(t *testing.T) {
	t.Parallel()
	Run(t, func(_ testing.TB, steps ...Step) llm.Model { return &fake{steps: steps} })
}

func TestSuiteNoticesABrokenPromise(t *testing.T) {
	t.Parallel()
	for _, broken := range []defect{
		repairsArguments, sameIDs, noIDs, saysStop, losesReasoning, streamsNothing, streamsTwice, streamsOne, retriesAll, retriesNone,
		retriesSecretly, retriesAtOnce, ignoresAsked, ignoresListener, ignoresCancel, hangs, hangsInWait, otherCode, losesCause,
		losesPartial, keepsCalls, goesOn, playsOneStep, changesRequest, ignoresModel, sendsEmpty, plainErrors,
	} {
		t.Run(string(broken), func(t *testing.T) {
			t.Parallel()
			var noticed []string
			for _, c := range checks {
				synctest.Test(t, func(t *testing.T) { // the fake's waits take no time
					faults := testkit.Faults(t, func(tb testing.TB) {
						c.run(&suite{TB: tb, patience: testPatience, newModel: func(_ testing.TB, steps ...Step) llm.Model {
							return &fake{broken: broken, steps: steps}
						}})
					})
					if len(faults) > 0 {
						noticed = append(noticed, c.name)
					}
				})
			}
			if len(noticed) == 0 {
				t.Fatalf("no check noticed a model that %s", broken)
			}
			t.Logf("noticed by %q", noticed)
		})
	}
}
