// Package composetest runs compositions in tests: bundles and patches become a plan, the plan runs until the test ends,
// and the test fails when a row does not start or stop, or leaves goroutines or processes behind.
//
//	r := composetest.Start(t,
//		composetest.With(base.Bundle()),
//		composetest.Replace("subprocess", plain.Module()),
//		composetest.Patch("- id: bash-local\n  config: {timeoutMs: 500}\n"))
//	executor := composetest.Value[shell.Executor](t, r)
package composetest
