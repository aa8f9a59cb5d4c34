// Package bashexec runs shell commands with bash through a subprocess runtime: what every executor that is built on bash
// shares. It decides on the environment, the deadline, the output budgets and the cause of a command's end. A row adds
// its own part, such as a sandbox around the command, by a Prepare.
//
// A command runs exactly as `bash -c` runs it. Only one that is longer than the kernel takes in one argument is handed
// over in pieces; of that bash shows: "eval:" in the messages of syntax errors, a doubled + under set -x, $_, and that
// the last program is a child of the shell instead of taking its place.
package bashexec
