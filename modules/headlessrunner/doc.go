// Package headlessrunner runs one task to its end, for a program that does nothing else.
//
// Row: headless-runner, module headless-runner. Needs agent.Agent, llm.Model and session.Store; uses jobs.Registry, whose
// jobs it ends with the task. Provides agent.Runner.
//
// A task is one turn of one session, a new one or one that is resumed. Background jobs that are alive when the turn is
// over are ended and waited for, and named: nobody is left who would look after them. Nobody answers a question either,
// unless the row approval finds a terminal.
//
// On stop: nothing to do; a task belongs to who runs it, and ends with the agent's row.
package headlessrunner
