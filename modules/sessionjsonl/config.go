package sessionjsonl

import (
	"path/filepath"
	"strings"

	"dsh/internal/dshhome"
	"dsh/module"
)

// Config is the configuration of the row session-persistence-jsonl.
type Config struct {
	Root string `koanf:"root" doc:"the directory that holds a directory for each session, absolute; empty: sessions in $DSH_HOME"`
}

// Validate returns what in c cannot work.
func (c Config) Validate() error {
	switch {
	case c.Root != "" && !module.IsAbs(c.Root):
		return module.Field("root", "must be an absolute path, got %q", c.Root)
	case strings.ContainsRune(c.Root, 0):
		return module.Field("root", "must not contain a NUL byte")
	}
	return nil
}

// root returns the directory, absolute.
func (c Config) root() (string, error) {
	switch {
	case c.Root != "" && !filepath.IsAbs(c.Root):
		return "", module.Field("root", "must be an absolute path here, got %q", c.Root)
	case c.Root != "":
		return c.Root, nil
	}
	home, err := dshhome.Dir()
	return filepath.Join(home, "sessions"), err
}
