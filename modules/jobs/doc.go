// Package jobs is the contract for work that goes on after the call that began it.
//
// A job has an owner, a session, and is reached by nobody else; a job without one is open to all. A Registry admits a
// bounded number of jobs for each owner, refuses the next before anything of it is begun, and owns the cancellation of
// each from the moment that Start has returned its id. A job ends when nothing of its work is left, not when somebody
// asked it to.
//
// That a job has ended is reported once: to whoever asks at that moment or kills it, or else as a Notice, which an agent
// takes between two steps. Whoever has been told otherwise gets no notice.
//
// Package jobstest holds the suite that every registry passes.
package jobs
