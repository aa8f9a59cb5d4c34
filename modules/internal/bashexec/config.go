package bashexec

import (
	"errors"
	"math"
	"path/filepath"
	"time"

	"dsh/module"
	"dsh/modules/subprocess"
)

// Config is the configuration of a row that runs commands with bash.
type Config struct {
	Cwd            string    `koanf:"cwd" doc:"working directory of commands that name none, absolute; empty: the host's"`
	TimeoutMs      int64     `koanf:"timeoutMs" doc:"ends a foreground command that names no timeout"`
	MaxTimeoutMs   int64     `koanf:"maxTimeoutMs" doc:"the longest timeout that a command may name; more is reduced to it"`
	MaxOutputBytes int64     `koanf:"maxOutputBytes" doc:"how much of the end of each output stream is kept in memory"`
	MaxSpillBytes  int64     `koanf:"maxSpillBytes" doc:"how long a stream may become before the file with the whole of it is given up"`
	GraceMs        int64     `koanf:"graceMs" doc:"time from TERM to KILL, and for draining output once the shell has exited"`
	Survivors      Survivors `koanf:"survivors" values:"report,terminate" doc:"what becomes of processes that go on after their command: report or terminate"`
	MemoryMax      int64     `koanf:"memoryMax" doc:"bytes of memory that a command may use, all its processes together; 0: no limit"`
	PidsMax        int64     `koanf:"pidsMax" doc:"processes and threads that a command may have at a time; 0: no limit"`
	CPUMax         float64   `koanf:"cpuMax" doc:"how many processors' worth of time a command may use; 0: no limit"`
}

// Survivors says what becomes of processes that go on when their command has settled.
type Survivors string

// The values of Survivors.
const (
	Report    Survivors = "report"    // they are counted, and end with the runtime
	Terminate Survivors = "terminate" // they are ended at once
)

// DefaultConfig returns the defaults of every key.
func DefaultConfig() Config {
	return Config{
		TimeoutMs: 120_000, MaxTimeoutMs: 600_000,
		MaxOutputBytes: 64_000, MaxSpillBytes: 64 << 20,
		GraceMs: 3_000, Survivors: Report,
	}
}

// Validate returns every setting that cannot work.
func (c Config) Validate() error {
	const maxMs = int64(math.MaxInt64 / time.Millisecond)
	var errs []error
	within := func(key string, got, most int64) {
		if got <= 0 {
			errs = append(errs, module.Field(key, "must be positive, got %d", got))
		} else if got > most {
			errs = append(errs, module.Field(key, "must be at most %d, got %d", most, got))
		}
	}
	if c.Cwd != "" && !filepath.IsAbs(c.Cwd) {
		errs = append(errs, module.Field("cwd", "must be an absolute path, got %q", c.Cwd))
	}
	within("timeoutMs", c.TimeoutMs, maxMs)
	within("maxTimeoutMs", c.MaxTimeoutMs, maxMs)
	if c.MaxTimeoutMs > 0 && c.TimeoutMs > c.MaxTimeoutMs {
		errs = append(errs, module.FieldWith("timeoutMs", "maxTimeoutMs", "must be at most maxTimeoutMs, which is %d, got %d", c.MaxTimeoutMs, c.TimeoutMs))
	}
	within("maxOutputBytes", c.MaxOutputBytes, math.MaxInt)
	within("maxSpillBytes", c.MaxSpillBytes, math.MaxInt64)
	within("graceMs", c.GraceMs, subprocess.MaxGrace.Milliseconds())
	limit := func(key string, got float64) {
		if !(got >= 0) || math.IsInf(got, 1) {
			errs = append(errs, module.Field(key, "must not be negative, got %v", got))
		}
	}
	limit("memoryMax", float64(c.MemoryMax))
	limit("pidsMax", float64(c.PidsMax))
	limit("cpuMax", c.CPUMax)
	if c.Survivors != Report && c.Survivors != Terminate {
		errs = append(errs, module.Field("survivors", "must be report or terminate, got %q", string(c.Survivors)))
	}
	return errors.Join(errs...)
}
