// Package toolbash is the tool `bash`: a model's, or a person's, way to run a shell command.
//
// Row: tool-bash, module tool-bash. Needs tools.Registry, shell.Executor and shell.Facts, and sandbox.Policies when the
// executor confines; uses approval.Service, jobs.Registry and agent.Prompt when there is one. It provides nothing; when it starts it
// registers the tool, and tells models how to read a result.
//
// A call is checked, its working directory is looked at, the managed variables are collected, and the command is run to
// its end by the executor, in whose Resolve all defaults and caps are. The working directory is the session's; outside
// of a session it is the executor's own. A relative workdir starts from there.
//
// A command that is to run in the background becomes a job of its session, of the kind bash: neither the call nor a timeout
// ends it, and it is over when no process of it is left.
//
// A command that fails or is killed is a value, and its text says so: the markers, their order, and every message are a
// protocol with models, kept by the tests. A call that was cancelled is an error with code ABORTED, a working directory
// that cannot be used one with code WORKDIR.
//
// Parameters are advertised only if the composition can honour them. One that is not, and comes all the same, is refused
// with a sentence that says why.
//
// On stop: the tool is taken out of the registry. Calls under way belong to their callers, jobs to their
// registry, processes to the runtime.
package toolbash
