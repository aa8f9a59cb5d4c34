// Package sessionjsonl keeps sessions as files: one JSON object a line, the header first.
//
// Row session-persistence-jsonl, module session-jsonl. It provides session.Store and, from the logs, sandbox.Overrides;
// where shell.Facts is mounted it contributes DSH_SESSION_JSONL, the file of the session that a command runs in.
//
// A session's files are <root>/<id>/session.jsonl and <root>/<id>/lock, made with the first event. Whoever has a session
// open holds the lock; it is gone with the process, however that ends. Each event is one write, so that a host that is
// killed loses none; a turn's end is synced, so that a machine that loses power keeps every finished turn. What such an
// end leaves half written is cut off when the session is opened again; damage before the last turn's end is nobody's
// crash, and is an error with its line.
//
// On stop every open session is closed. Listing and reading work without a start. Where files cannot be locked sessions
// cannot be kept.
package sessionjsonl
