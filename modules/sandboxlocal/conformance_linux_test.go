package sandboxlocal_test

import (
	"testing"

	"dsh/internal/testkit"
	"dsh/modules/sandbox/sandboxtest"
	"dsh/modules/sandboxlocal"
)

func TestBackendsKeepTheContract(t *testing.T) {
	for _, backend := range []string{sandboxlocal.BackendBwrap, sandboxlocal.BackendLandlock} {
		t.Run(backend, func(t *testing.T) {
			pinned(t, backend) // skips without it
			sandboxtest.Run(t, func(t testing.TB) sandboxtest.Bench {
				w := build(t, func(c *sandboxlocal.Config) { c.Backend = backend })
				return sandboxtest.Bench{Provider: w.provider, Runtime: w.runtime}
			})
		})
	}
	t.Run("auto", func(t *testing.T) {
		testkit.NeedProgram(t, "bwrap")
		sandboxtest.Run(t, func(t testing.TB) sandboxtest.Bench {
			w := build(t, nil)
			return sandboxtest.Bench{Provider: w.provider, Runtime: w.runtime}
		})
	})
}
