package llmscript

import (
	"strings"

	"dsh/module"
)

// Config is the configuration of the row llm-script.
type Config struct {
	File string `koanf:"file" doc:"the YAML file with a list of steps, absolute, one for each response"`
}

// Validate returns what in c cannot work.
func (c Config) Validate() error {
	switch {
	case !module.IsAbs(c.File):
		return module.Field("file", "must be the absolute path of a script, got %q", c.File)
	case strings.ContainsRune(c.File, 0):
		return module.Field("file", "must not contain a NUL byte")
	}
	return nil
}
