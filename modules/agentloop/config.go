package agentloop

import (
	"errors"
	"math"
	"time"

	"dsh/module"
)

// Config is what a row of agent-loop sets.
type Config struct {
	MaxSteps             int `koanf:"maxSteps" doc:"how often a turn may ask the model; it fails when that is not enough"`
	MaxTurnMs            int `koanf:"maxTurnMs" doc:"ends a turn that takes longer; 0: never"`
	MaxParallelToolCalls int `koanf:"maxParallelToolCalls" doc:"how many tool calls may overlap, of tools that allow it"`

	ContextWindow        int `koanf:"contextWindow" doc:"how many tokens the model can read; near that, the conversation is summarised; 0: only when the model refuses it"`
	MaxInlineBytes       int `koanf:"maxInlineBytes" doc:"a longer result of a tool goes to a file; 0: never"`
	InstructionsMaxBytes int `koanf:"instructionsMaxBytes" doc:"how much of the workspace's instructions (AGENTS.md) the model is given; 0: none"`
}

// DefaultConfig returns what a row without settings has.
func DefaultConfig() Config {
	return Config{MaxSteps: 200, MaxParallelToolCalls: 10, ContextWindow: 131072, MaxInlineBytes: 50000, InstructionsMaxBytes: 65536}
}

// Validate returns everything in c that cannot work.
func (c Config) Validate() error {
	var errs []error
	positive := func(key string, v int) {
		if v < 1 {
			errs = append(errs, module.Field(key, "must be a positive integer, got %d", v))
		}
	}
	atLeast := func(key string, v, least int) {
		if v != 0 && v < least {
			errs = append(errs, module.Field(key, "must be 0 or at least %d, got %d", least, v))
		}
	}
	positive("maxSteps", c.MaxSteps)
	positive("maxParallelToolCalls", c.MaxParallelToolCalls)
	atLeast("maxTurnMs", c.MaxTurnMs, 1)
	if int64(c.MaxTurnMs) > math.MaxInt64/int64(time.Millisecond) {
		errs = append(errs, module.Field("maxTurnMs", "is too long, got %d", c.MaxTurnMs))
	}
	atLeast("contextWindow", c.ContextWindow, 1024)
	atLeast("maxInlineBytes", c.MaxInlineBytes, 1024)
	atLeast("instructionsMaxBytes", c.InstructionsMaxBytes, 1)
	return errors.Join(errs...)
}
