package approvalterminal

import "dsh/module"

// Config is the configuration of the row approval.
type Config struct {
	Policy Policy `koanf:"policy" values:"ask,never" doc:"ask on the terminal, or never: reject whatever needs approval"`
}

// Policy says whether anybody is asked.
type Policy string

// The values of Policy.
const (
	Ask   Policy = "ask"
	Never Policy = "never"
)

// DefaultConfig returns what holds when a row says nothing.
func DefaultConfig() Config { return Config{Policy: Ask} }

// Validate returns what in c cannot work.
func (c Config) Validate() error {
	if c.Policy != Ask && c.Policy != Never {
		return module.Field("policy", "must be ask or never, got %q", string(c.Policy))
	}
	return nil
}
