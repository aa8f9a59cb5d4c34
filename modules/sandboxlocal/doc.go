// Package sandboxlocal confines commands on this machine.
//
// Row sandbox, module sandbox-local. It provides sandbox.Provider and needs subprocess.Runtime. Backends, in the order of
// preference:
//
//   - bwrap: bubblewrap, with a read-only root and private /dev, /proc, /run and, for workspace-write, /tmp. Full.
//   - landlock: a Landlock ruleset on the thread that forks, without any helper process. Partial.
//   - custom: a program of the deployment's, which is given bubblewrap's arguments. It replaces the others.
//
// The first confined command is its own probe. A backend whose runner fails before it executes the command is probed by
// itself; if that fails too it is not used until a later probe succeeds, and the command goes to the next backend. With
// none left the command is not run: sandbox.UnavailableError, with what each of them said.
//
// What each backend enforces, and what it does not, is in docs/sandbox.md. Profiles and rulesets are made once per policy.
//
// A session's temporary directory is /tmp under bwrap, and TMPDIR. It lasts until the row stops, which removes all of
// them. Processes that are confined already stay so: a sandbox is not undone.
//
// Limits: on anything but Linux every command is refused. Whoever may write to a parent of the workspace from outside of
// a sandbox can exchange it while a command is being prepared.
package sandboxlocal
