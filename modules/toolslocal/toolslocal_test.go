package toolslocal_test

import (
	"log/slog"
	"testing"

	"dsh/internal/testkit"
	"dsh/modules/tools"
	"dsh/modules/tools/toolstest"
	"dsh/modules/toolslocal"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func newRegistry(testing.TB) tools.Registry {
	return toolslocal.New(toolslocal.Params{Log: slog.New(slog.DiscardHandler)}).Registry
}

func TestContract(t *testing.T) { toolstest.Run(t, newRegistry) }
