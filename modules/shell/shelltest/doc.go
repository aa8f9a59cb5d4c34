// Package shelltest holds the conformance suite of shell.Executor for executors that run bash. Each check is named after
// what goes wrong when it fails, and goes through the contract alone.
package shelltest
