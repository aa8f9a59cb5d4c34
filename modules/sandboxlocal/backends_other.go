//go:build !linux

package sandboxlocal

const unsupported = "this platform has no sandbox backend yet"

func backends(*machine) []backend { return nil }
