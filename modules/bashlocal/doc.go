// Package bashlocal runs shell commands with bash, unconfined: with the rights of the host itself.
//
// Row bash-local. It provides shell.Executor and needs subprocess.Runtime. It finds bash when the row starts, and does
// not start without one. When the row stops, the commands that it started go on: they belong to the runtime, so that an
// executor can be exchanged under running jobs.
//
// Commands inherit the runtime's scrubbed environment with NO_COLOR=1, TERM=dumb, PAGER=cat, GIT_PAGER=cat,
// GIT_TERMINAL_PROMPT=0 and `false` as editor; the caller's variables go over these, the managed DSH_* facts over all.
// BASH_ENV, ENV, BASH_FUNC_*, SHELLOPTS, BASHOPTS and PS4 are not inherited. A command may be 1 MiB long.
package bashlocal
