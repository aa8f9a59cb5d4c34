// Package agentloop is the agent: it asks the model, calls the tools that the model asks for, and asks again, until the
// model asks for none.
//
// Row: agent-loop, module agent-loop. Needs llm.Model, tools.Registry and agent.Prompt; uses jobs.Registry, whose notices
// reach the next step of a turn, and session.Store, which it calls nothing of but stops before. Provides agent.Agent.
//
// A turn is made of steps, each one response of the model and the calls in it. Before a step the agent makes room in the
// conversation if it has to, and logs what the model has to be told: the messages of the turn, the workspace's
// instructions (AGENTS.md and its like, which reach the model and change no row), and the runtime context, the latter two
// only when the conversation does not say the same already. Calls are made one after another, but for neighbours whose
// tools allow an overlap; they are logged, and answered, in the model's order.
//
// A conversation that fills four fifths of the context window, or that the model refuses as too long, is summarised by the
// model itself; the log keeps all of it. A tool's result that is longer than maxInlineBytes goes to a file, and the model
// gets its beginning, its end, and the file's name.
//
// On stop: open turns are aborted and waited for.
package agentloop
