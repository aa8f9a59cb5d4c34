package subprocesslocal

import (
	"errors"
	"fmt"
	"strings"

	"dsh/module"
	"dsh/modules/subprocess"
)

// Config is the configuration of the row subprocess.
type Config struct {
	KeepEnv       []string `koanf:"keepEnv" doc:"variables that commands see although their names look like secrets"`
	SpillKeepDays int      `koanf:"spillKeepDays" doc:"days after which files with the whole output of commands go, once their host has ended"`
	Range         string   `koanf:"range" values:"auto,scope,cgroup,group" doc:"what holds the processes of a command together: auto, scope, cgroup or group; auto is the best that works"`
	EnterScope    bool     `koanf:"enterScope" doc:"whether this process may move into a scope that it has the systemd manager make"`
}

// rangeAuto is the best kind of range that works.
const rangeAuto = "auto"

// DefaultConfig returns what holds when a row says nothing.
func DefaultConfig() Config { return Config{KeepEnv: []string{}, SpillKeepDays: 7, Range: rangeAuto} }

// Validate returns everything in c that cannot work.
func (c Config) Validate() error {
	var errs []error
	for i, name := range c.KeepEnv {
		key := fmt.Sprintf("keepEnv[%d]", i)
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			errs = append(errs, module.Field(key, "must be the name of a variable, got %q", name))
		case strings.HasPrefix(strings.ToUpper(name), "DSH_"):
			errs = append(errs, module.Field(key, "must not be a DSH_ name, which never reaches a command from outside, got %q", name))
		}
	}
	if c.SpillKeepDays < 0 || c.SpillKeepDays > 36500 {
		errs = append(errs, module.Field("spillKeepDays", "must be from 0 to 36500, got %d", c.SpillKeepDays))
	}
	switch subprocess.RangeKind(c.Range) {
	case rangeAuto, subprocess.RangeCgroup, subprocess.RangeGroup:
	case subprocess.RangeScope:
		if !c.EnterScope {
			errs = append(errs, module.Field("range", "must not be scope unless enterScope is true: commands can be started in a scope only from within it"))
		}
	default:
		errs = append(errs, module.Field("range", "must be auto, scope, cgroup or group, got %q", c.Range))
	}
	return errors.Join(errs...)
}
