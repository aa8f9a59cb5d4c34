// Package agent is the contract for agents: what works on a task by asking a model, calling the tools that the model asks
// for, and asking again, until the model has nothing left to do.
//
// An Agent makes turns of a session. Everything that it does is in the session's log, in order and as it happens; the log
// is the only state there is, so a turn can be followed by another in another host. A Runner makes one turn of one
// session, from a task to an answer, as a program's only job. Prompt is where rows say what a model is told besides the
// conversation.
//
// Package agenttest holds the suite that every prompt and every agent passes.
package agent
