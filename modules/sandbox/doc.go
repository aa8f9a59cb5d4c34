// Package sandbox is the contract for confining commands: what they may do to files, who decides on it, and how to tell a
// refusal from a failure.
//
// A Policy is what one call may do. Policies says which policy that is; a Provider turns a process that is about to be
// spawned into one that is confined to a policy. There is no passthrough: a process that cannot be confined is not
// confined by half, it is an *UnavailableError, and nothing is run.
//
// The modes speak of files alone. What else a backend keeps a command from, and what it does not, is in
// Confined.NotEnforced and in docs/sandbox.md.
//
// How a confined command ended is read by a Watch: refusals and a broken runner look like ordinary failures otherwise.
//
// Package sandboxtest holds the suites that every provider and every home of policies passes.
package sandbox
