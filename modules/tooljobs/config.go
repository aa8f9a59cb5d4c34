package tooljobs

import (
	"errors"
	"math"
	"time"

	"dsh/module"
)

// Config is what a row of tool-jobs sets.
type Config struct {
	WaitTimeoutMs    int64 `koanf:"waitTimeoutMs" doc:"how long job_output waits when it is to wait and is not told how long"`
	MaxWaitTimeoutMs int64 `koanf:"maxWaitTimeoutMs" doc:"the longest that job_output waits; more is reduced to it"`
}

// DefaultConfig returns the defaults of every key.
func DefaultConfig() Config { return Config{WaitTimeoutMs: 30_000, MaxWaitTimeoutMs: 600_000} }

// Validate returns every setting that cannot work.
func (c Config) Validate() error {
	const most = int64(math.MaxInt64 / time.Millisecond)
	var errs []error
	within := func(key string, got int64) {
		switch {
		case got < 1:
			errs = append(errs, module.Field(key, "must be positive, got %d", got))
		case got > most:
			errs = append(errs, module.Field(key, "must be at most %d, got %d", most, got))
		}
	}
	within("waitTimeoutMs", c.WaitTimeoutMs)
	within("maxWaitTimeoutMs", c.MaxWaitTimeoutMs)
	if len(errs) == 0 && c.WaitTimeoutMs > c.MaxWaitTimeoutMs {
		errs = append(errs, module.FieldWith("waitTimeoutMs", "maxWaitTimeoutMs", "(%d) exceeds maxWaitTimeoutMs (%d)", c.WaitTimeoutMs, c.MaxWaitTimeoutMs))
	}
	return errors.Join(errs...)
}
