package subprocesslocal

// onMainThread reports whether the thread that calls it is the process's first. What Specs do to threads is Linux's.
func onMainThread() bool { return false }
