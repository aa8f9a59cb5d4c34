package toolslocal

// Config has no settings.
type Config struct{}
