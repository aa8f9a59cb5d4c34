package subprocesslocal

// Package syscall cannot set a mask here: what was blocked when this process was started stays blocked in its children.

func maskInherited() bool { return false }

func clearMask() {}
