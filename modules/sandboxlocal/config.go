package sandboxlocal

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	"dsh/module"
)

// Config is the configuration of the row sandbox.
type Config struct {
	Backend                 string   `koanf:"backend" values:"auto,bwrap,landlock,custom" doc:"what confines: bwrap, landlock, custom, or auto for the first of bwrap and landlock that works"`
	RunnerCommand           []string `koanf:"runnerCommand" doc:"a program and arguments that confine in place of the backends; bubblewrap's arguments and the command follow"`
	RunnerFailureSignatures []string `koanf:"runnerFailureSignatures" doc:"texts on stderr by which the runner's own failures are known"`
	ProbeTimeoutMs          int64    `koanf:"probeTimeoutMs" doc:"how long a backend may take to show that it works"`
	Network                 string   `koanf:"network" values:"host,none" doc:"host, or none (bwrap only)"`
	Devices                 []string `koanf:"devices" doc:"device files that commands may use, such as /dev/dri; others are hidden (bwrap) or not writable (landlock)"`
}

// Values of Config.Backend and Config.Network.
const (
	BackendAuto     = "auto"
	BackendBwrap    = "bwrap"
	BackendLandlock = "landlock"
	BackendCustom   = "custom"
	NetworkHost     = "host"
	NetworkNone     = "none"
)

// DefaultConfig returns what holds when a row says nothing.
func DefaultConfig() Config {
	return Config{
		Backend: BackendAuto, RunnerCommand: []string{}, RunnerFailureSignatures: []string{},
		ProbeTimeoutMs: 5000, Network: NetworkHost, Devices: []string{},
	}
}

// Validate returns everything in c that cannot work.
func (c Config) Validate() error {
	var errs []error
	bad := func(key, format string, args ...any) { errs = append(errs, module.Field(key, format, args...)) }
	badWith := func(key, with, format string, args ...any) {
		errs = append(errs, module.FieldWith(key, with, format, args...))
	}
	switch c.Backend {
	case BackendAuto, BackendBwrap, BackendLandlock, BackendCustom:
	default:
		bad("backend", "must be auto, bwrap, landlock or custom, got %q", c.Backend)
	}
	switch {
	case len(c.RunnerCommand) == 0 && c.Backend == BackendCustom:
		badWith("runnerCommand", "backend", "must name a program when backend is custom")
	case len(c.RunnerCommand) > 0 && (c.Backend == BackendBwrap || c.Backend == BackendLandlock):
		bad("runnerCommand", "contradicts backend: %s", c.Backend)
	case len(c.RunnerCommand) == 0 && len(c.RunnerFailureSignatures) > 0:
		bad("runnerFailureSignatures", "requires runnerCommand")
	case len(c.RunnerCommand) > 0 && len(c.RunnerFailureSignatures) == 0:
		bad("runnerCommand", "requires at least one runnerFailureSignatures entry")
	}
	for i, arg := range c.RunnerCommand {
		if strings.ContainsRune(arg, 0) || i == 0 && arg == "" {
			bad(fmt.Sprintf("runnerCommand[%d]", i), "must be text without NUL bytes, the first one not empty")
		}
	}
	for i, s := range c.RunnerFailureSignatures {
		if strings.TrimSpace(s) == "" || strings.ContainsAny(s, "\r\n") {
			bad(fmt.Sprintf("runnerFailureSignatures[%d]", i), "must be a non-empty single-line string")
		}
	}
	if c.ProbeTimeoutMs <= 0 || c.ProbeTimeoutMs > math.MaxInt64/int64(time.Millisecond) {
		bad("probeTimeoutMs", "must be a positive number of milliseconds, got %d", c.ProbeTimeoutMs)
	}
	switch {
	case c.Network != NetworkHost && c.Network != NetworkNone:
		bad("network", "must be host or none, got %q", c.Network)
	case c.Network == NetworkNone && c.Backend == BackendLandlock:
		bad("network", "none needs bwrap; landlock leaves the network open")
	}
	for i, d := range c.Devices {
		if !strings.HasPrefix(d, "/dev/") || filepath.Clean(d) != d || strings.ContainsRune(d, 0) {
			bad(fmt.Sprintf("devices[%d]", i), "must be a path below /dev, got %q", d)
		}
	}
	return errors.Join(errs...)
}
