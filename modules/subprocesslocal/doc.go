// Package subprocesslocal runs programs on this machine and owns every process that comes of them.
//
// Its row is subprocess, its module subprocess-local; it provides subprocess.Runtime and needs nothing. On stop it
// refuses new commands, terminates all at once, and returns when nothing of any command is left.
//
// A command is born in a range of its own, whose kind is chosen when the row starts, by trying, the best first:
//
//   - scope, cgroup: a cgroup for each command, in a scope that a systemd manager makes for this process, or below the
//     cgroup that this process is in. The kernel says who is a member, ends all at one stroke, and tells when none is left.
//   - group: a session for each command, and the host as child subreaper, so that whatever leaves the session stays a
//     descendant of the host. The process tree alone then says what belongs to a command: its leader, adopted orphans that
//     came of it, and their descendants. A range is empty when no direct child of the host belongs to it, which the kernel
//     tells by SIGCHLD; nothing is polled and /proc is not scanned. Whose an orphan is, its session says, or else the
//     cookie DSH_RANGE in its environment.
//
// A guard, a process beside this one, ends the commands if the host dies without a stop.
//
// Limits: in a group, a program that both leaves its session and hides or drops its environment (env -i, setuid, not
// dumpable) cannot be attributed, unless it was seen before it was orphaned. It is not waited for by its command, and ends
// at the row's stop. The same is true of a command of root that moves out of its cgroup. What another daemon starts on a
// command's behalf is not owned. On macOS a range is the process group alone.
package subprocesslocal
