package llmopenai

import (
	"errors"
	"math"
	"net/url"
	"regexp"

	"dsh/module"
)

// Config is the configuration of the row llm.
type Config struct {
	Provider            string `koanf:"provider" doc:"what to call the provider in logs; empty: deepseek, openai, or the server's host"`
	BaseURL             string `koanf:"baseURL" doc:"the address that /chat/completions is appended to; empty: DEEPSEEK_BASE_URL or OPENAI_BASE_URL, or the provider's own"`
	Model               string `koanf:"model" doc:"the model to call; empty: deepseek-v4-flash at DeepSeek's own address, and elsewhere there is no default"`
	APIKeyEnv           string `koanf:"apiKeyEnv" doc:"the variable that holds the key; empty: DEEPSEEK_API_KEY, or OPENAI_API_KEY"`
	StreamIdleTimeoutMs int64  `koanf:"streamIdleTimeoutMs" doc:"how long a response may stand still, in milliseconds"`
	MaxRetries          int    `koanf:"maxRetries" doc:"how often a call that failed for a while is made again"`
}

// DefaultConfig returns what holds when a row says nothing.
func DefaultConfig() Config { return Config{StreamIdleTimeoutMs: 300_000, MaxRetries: 5} }

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Validate returns everything in c that cannot work.
func (c Config) Validate() error {
	var errs []error
	if c.BaseURL != "" && !validBaseURL(c.BaseURL) {
		errs = append(errs, module.Field("baseURL", "must be an http or https address without user, query and fragment"))
	}
	if c.APIKeyEnv != "" && !variableName.MatchString(c.APIKeyEnv) {
		errs = append(errs, module.Field("apiKeyEnv", "must be the name of a variable"))
	}
	if c.StreamIdleTimeoutMs < 1 || c.StreamIdleTimeoutMs > math.MaxInt32 {
		errs = append(errs, module.Field("streamIdleTimeoutMs", "must be from 1 to %d, got %d", math.MaxInt32, c.StreamIdleTimeoutMs))
	}
	if c.MaxRetries < 0 {
		errs = append(errs, module.Field("maxRetries", "must not be negative, got %d", c.MaxRetries))
	}
	return errors.Join(errs...)
}

// validBaseURL refuses also what would put a secret into messages.
func validBaseURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" &&
		u.User == nil && u.RawQuery == "" && u.Fragment == ""
}
