//go:build unix

package shelltest

import (
	"slices"
	"testing"

	"dsh/internal/testkit"
	"dsh/modules/shell"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestACorrectExecutorFails(t *testing.T) {
	t.Parallel()
	Run(t, func(tb testing.TB) shell.Executor { return newFake(tb, faults{}) }, Options{})
}

func TestABrokenExecutorPasses(t *testing.T) {
	t.Parallel()
	for complaint, f := range map[string]faults{
		"a later cancel hides the timeout":                        {lastCause: true},
		"exit 0 after a timeout passes for success":               {successWins: true},
		"the end of a long output is lost":                        {headKept: true},
		"the kept end begins inside a character":                  {boundaryIgnored: true},
		"output is read twice":                                    {readTwice: true},
		"a character is torn between two reads":                   {tornRead: true},
		"lost output is not owned up to":                          {lossHidden: true},
		"a started command ends with the context that started it": {startFollowsContext: true},
		"a started command times out":                             {startTimesOut: true},
		"Run applies defaults or caps of its own":                 {runDefaults: true},
		"an ended context runs the command":                       {endedContextRuns: true},
		"survivors end with the caller's context":                 {contextLingers: true},
		"a killed command goes on":                                {killTwice: true},
		"a hurried command keeps its grace":                       {hurryIgnored: true},
		"what survives its command survives Kill":                 {survivesKill: true},
		"an exit after Kill passes for completion":                {killForgotten: true},
		"a variable is lost or overruled":                         {factsUnderEnv: true},
		"a bad working directory is blamed on the shell":          {dirUnchecked: true},
		"a failing command is an error":                           {exitIsError: true},
	} {
		t.Run(complaint, func(t *testing.T) {
			t.Parallel()
			i := slices.IndexFunc(checks(), func(c check) bool { return c.name == complaint })
			if i < 0 {
				t.Fatal("no check has this name")
			}
			said := testkit.Faults(t, func(tb testing.TB) { checks()[i].run(&suite{TB: tb, Executor: newFake(tb, f)}) })
			if len(said) == 0 {
				t.Error("the check found nothing wrong")
			}
		})
	}
}
