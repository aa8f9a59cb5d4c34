// Package subprocesstest tests implementations of package subprocess: Run is the suite that every runtime passes, and
// Plain is a second runtime, over os/exec, for tests that exchange the real one.
package subprocesstest
