package testkit_test

import (
	"strings"
	"testing"

	"dsh/internal/testkit"
)

func TestFaultsAreKept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		check func(testing.TB)
		want  string
	}{
		"nothing":  {func(testing.TB) {}, ""},
		"an error": {func(t testing.TB) { t.Error("a", 1); t.Errorf("b%d", 2) }, "a 1, b2"},
		"a fatal error": {func(t testing.TB) {
			t.Cleanup(func() { t.Error("cleaned") })
			t.Fatal("fatal")
			t.Error("after it")
		}, "fatal, cleaned"},
		"a panic":                 {func(testing.TB) { panic("dear me") }, "panic: dear me"},
		"fatal cleanups":          {func(t testing.TB) { t.Cleanup(func() { t.Error("first") }); t.Cleanup(t.FailNow) }, "failed, first"},
		"a cleanup of a cleanup":  {func(t testing.TB) { t.Cleanup(func() { t.Cleanup(func() { t.Error("second") }) }) }, "second"},
		"a skip":                  {func(t testing.TB) { t.Skip("no reason"); t.Error("after it") }, ""},
		"a context in a cleanup":  {func(t testing.TB) { t.Cleanup(func() { t.Error(t.Context().Err()) }) }, "context canceled"},
		"whether it has failed":   {func(t testing.TB) { t.Fail(); t.Error(t.Failed()) }, "failed, true"},
		"a context before an end": {func(t testing.TB) { t.Error(t.Context().Err()) }, "<nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := strings.Join(testkit.Faults(t, c.check), ", "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
