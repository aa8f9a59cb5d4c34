package toolbash

// Config is what a row of tool-bash sets.
type Config struct {
	EnableRunInBackground bool `koanf:"enableRunInBackground" doc:"offer run_in_background, if jobs are mounted"`
}

// DefaultConfig returns what a row without settings has.
func DefaultConfig() Config { return Config{EnableRunInBackground: true} }
