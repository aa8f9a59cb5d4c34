//go:build unix

package subprocesstest

import (
	"log/slog"
	"testing"

	"dsh/internal/testkit"
	"dsh/module"
	"dsh/modules/subprocess"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func newPlain(testing.TB) (subprocess.Runtime, module.Runner) {
	res := NewPlain(PlainParams{Log: slog.New(slog.DiscardHandler)})
	return res.Runtime, res.Runner
}

func TestPlain(t *testing.T) { Run(t, newPlain, Options{}) }

func TestModule(t *testing.T) {
	if m := Module(); m.Name() != "subprocess-plain" || len(m.Provides()) != 1 || m.Provides()[0] != subprocess.Key.Type() {
		t.Errorf("got %s, which provides %v", m.Name(), m.Provides())
	}
}
