package jobslocal

import "dsh/module"

// Config is what a row of jobs-local sets.
type Config struct {
	MaxConcurrentJobsPerOwner int `koanf:"maxConcurrentJobsPerOwner" doc:"how many jobs of one session may run at a time"`
}

// DefaultConfig returns the defaults of every key.
func DefaultConfig() Config { return Config{MaxConcurrentJobsPerOwner: 10} }

// Validate returns every setting that cannot work.
func (c Config) Validate() error {
	if c.MaxConcurrentJobsPerOwner < 1 {
		return module.Field("maxConcurrentJobsPerOwner", "must be positive, got %d", c.MaxConcurrentJobsPerOwner)
	}
	return nil
}
