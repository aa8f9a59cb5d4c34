package headlessrunner

// Config is what a row of headless-runner sets: nothing.
type Config struct{}
