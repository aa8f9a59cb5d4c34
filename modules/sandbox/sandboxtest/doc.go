// Package sandboxtest holds the suites that every sandbox.Provider and every sandbox.Policies pass.
package sandboxtest
