package main

import "golang.org/x/sys/unix"

// adoptOrphans makes this process a child subreaper (prctl(2)), or no longer one.
func adoptOrphans(adopt bool) error {
	var flag uintptr
	if adopt {
		flag = 1
	}
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, flag, 0, 0, 0)
}
