package bashsandbox

import "dsh/modules/internal/bashexec"

// Config is the row's configuration.
type Config = bashexec.Config

// DefaultConfig returns the defaults.
func DefaultConfig() Config { return bashexec.DefaultConfig() }
