// Package sandboxpolicy is the one home of the sandbox's mode and workspace.
//
// Row sandbox-policy. It provides sandbox.Policies, and uses sandbox.Overrides when something keeps sessions, and
// agent.Prompt to tell models what they may do. The mode of a call is the one that was approved for it, else the session's
// last choice, else the row's; the workspace is the session's, else the row's, else the host's working directory. A
// session's choice that cannot be read refuses the call: it may have been the narrower one.
//
// A workspace is returned as the kernel knows it. It is followed component by component as it was written: cleaning a path
// first would take `link/..` for the directory that holds the link, where the kernel goes to the parent of its target.
//
// On stop: models are told no more of it.
package sandboxpolicy
