//go:build !linux

package testkit

// children knows nothing on platforms without /proc.
func children() []string { return nil }

// Processes finds nothing on platforms without /proc.
func Processes(...string) []int { return nil }

func cgroups(string) int { return 0 }
