// Package bashsandbox runs shell commands with bash inside of a sandbox.
//
// Row bash-sandbox. It provides shell.Executor and needs subprocess.Runtime, sandbox.Provider and sandbox.Policies. It is
// bash-local but for what is spawned: each command is confined to its policy first, within the same deadline, and under
// danger-full-access, which is no confinement, it is not.
//
// A command whose runner fails was not executed. It is confined again while the provider knows another way, and is a
// *sandbox.UnavailableError when there is none; it never runs unconfined. A started command whose runner fails says so in
// its status.
//
// The working directory of commands that name none is the workspace, unless the row sets cwd. When the row stops, the
// commands that it started go on, as confined as they were: they belong to the runtime.
package bashsandbox
