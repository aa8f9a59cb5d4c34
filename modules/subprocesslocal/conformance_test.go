//go:build unix

package subprocesslocal_test

import (
	"log/slog"
	"testing"

	"dsh/module"
	"dsh/modules/subprocess"
	"dsh/modules/subprocess/subprocesstest"
	"dsh/modules/subprocesslocal"
)

func TestConformance(t *testing.T) {
	subprocesstest.Run(t, newRuntime, subprocesstest.Options{Ranges: true})
}

func newRuntime(t testing.TB) (subprocess.Runtime, module.Runner) {
	t.Helper()
	res, err := subprocesslocal.New(subprocesslocal.Params{
		Config: subprocesslocal.DefaultConfig(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return res.Runtime, res.Runner
}
