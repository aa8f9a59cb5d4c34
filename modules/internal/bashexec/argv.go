package bashexec

import (
	"fmt"
	"strings"
)

const (
	maxArgument = 131_071 // the longest argument that Linux takes: 32 pages without the NUL
	maxCommand  = 1 << 20 // arguments and environment together have 2 MiB by default
	chunk       = 120_000 // of a command that is longer than one argument
	bashName    = "bash"  // $0, and the prefix of bash's messages
)

// argv is what bash is called with to run command.
//
// A command that is longer than one argument comes in pieces and is put together in the shell. Unlike a file or a
// descriptor this leaves stdin, $0, $#, line numbers, traps and here-documents as bash -c has them.
func argv(command string) []string {
	if len(command) <= maxArgument {
		// bash would take a command that begins so for options of its own.
		if strings.HasPrefix(command, "-") || strings.HasPrefix(command, "+") {
			return []string{bashName, "-c", "--", command}
		}
		return []string{bashName, "-c", command}
	}
	var whole strings.Builder
	var chunks []string
	for rest := command; rest != ""; {
		n := min(len(rest), chunk)
		chunks = append(chunks, rest[:n])
		rest = rest[n:]
		fmt.Fprintf(&whole, "${%d}", len(chunks))
	}
	script := "BASH_EXECUTION_STRING=" + whole.String() + `; shift $#; eval -- "$BASH_EXECUTION_STRING"`
	return append([]string{bashName, "-c", script, bashName}, chunks...)
}
