package headless_test

import (
	"strings"
	"testing"

	"dsh/bundles/base"
	"dsh/bundles/headless"
	"dsh/compose"
	"dsh/composetest"
)

// TestWhatIsComposedOnEachPlatform is a golden of the enabled rows, in the order in which they start.
func TestWhatIsComposedOnEachPlatform(t *testing.T) {
	const unix = "subprocess shell-env sandbox jobs system-prompt session-persistence-jsonl sandbox-policy approval tools bash-sandbox " +
		"tool-bash tool-jobs llm agent-loop headless-runner"
	for platform, want := range map[string]string{
		"linux":  unix,
		"darwin": unix,
		"win32":  "shell-env jobs system-prompt session-persistence-jsonl sandbox-policy approval tools tool-jobs llm agent-loop headless-runner",
	} {
		plan := composetest.MustPlan(t, composetest.With(base.Bundle(), headless.Bundle()),
			composetest.For(func(m *compose.Machine) { m.Platform = platform }))
		var rows []string
		for _, m := range plan.Mounts() {
			rows = append(rows, m.ID)
		}
		if got := strings.Join(rows, " "); got != want {
			t.Errorf("%s:\n got %s\nwant %s", platform, got, want)
		}
	}
}
