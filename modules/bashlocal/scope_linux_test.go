package bashlocal_test

import (
	"testing"

	"dsh/internal/testkit"
	"dsh/modules/subprocess"
	"dsh/modules/subprocesslocal"
)

func TestSurvivorsAreNotTerminatedInAScope(t *testing.T) {
	if !testkit.In(t, testkit.World{UserManager: true}) {
		return
	}
	c := subprocesslocal.DefaultConfig()
	c.Range, c.EnterScope = string(subprocess.RangeScope), true
	endsSurvivors(t, runtimeWith(t, c))
}
