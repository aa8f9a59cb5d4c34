package shellenv

// Config is the row's configuration, which has no keys.
type Config struct{}
