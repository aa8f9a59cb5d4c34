package bashexec

import (
	"maps"

	"dsh/modules/shell"
	"dsh/modules/subprocess"
)

// environment edits what commands inherit: nobody is there to answer a pager, a prompt or an editor, and bash reads no
// code or options from variables. What the caller says goes above that, facts above all.
func environment(s shell.Spec) subprocess.Env {
	set := map[string]string{
		"NO_COLOR": "1", "TERM": "dumb",
		"PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0",
		// An editor that fails, so that what waits for a person's text stops with its own message. One that succeeds
		// would accept whatever stands in the file.
		"EDITOR": "false", "VISUAL": "false", "GIT_EDITOR": "false", "GIT_SEQUENCE_EDITOR": "false",
	}
	maps.Copy(set, s.Env)
	maps.Copy(set, s.Facts)
	return subprocess.Env{
		Unset: []string{"BASH_ENV", "ENV", "BASH_FUNC_*", "SHELLOPTS", "BASHOPTS", "PS4"},
		Set:   set,
	}
}
