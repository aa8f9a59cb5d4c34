package systemprompt

import "dsh/module"

// Config is what a row of system-prompt sets.
type Config struct {
	IncludeHarnessIdentity bool   `koanf:"includeHarnessIdentity" doc:"begin the system prompt with who the model is"`
	IncludeRuntimeContext  bool   `koanf:"includeRuntimeContext" doc:"tell the model what may change between two steps, such as the sandbox's policy"`
	Persona                string `koanf:"persona" doc:"the deployment's own words; {{provider}}, {{model}} and {{cwd}} are replaced"`
}

// DefaultConfig returns what a row without settings has.
func DefaultConfig() Config { return Config{IncludeHarnessIdentity: true, IncludeRuntimeContext: true} }

// Validate returns what in c cannot work.
func (c Config) Validate() error {
	if _, err := parse(c.Persona); err != nil {
		return module.Field("persona", "%v", err)
	}
	return nil
}
