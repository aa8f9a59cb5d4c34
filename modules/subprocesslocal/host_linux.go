package subprocesslocal

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// keepDescriptors keeps all descriptors but the standard ones from children.
func keepDescriptors() error {
	err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	// Before Linux 5.11.
	entries, lerr := os.ReadDir("/proc/self/fd")
	if lerr != nil {
		return errors.Join(fmt.Errorf("mark inherited descriptors: %w", err), lerr)
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// defaultLibcSignals gives 32 to 34 their default. C libraries keep them for their threads; Go leaves them as they were
// inherited, and os/signal does not reach them.
func defaultLibcSignals() error {
	var byDefault [64]byte // a struct sigaction of all zeros, SIG_DFL, whatever its layout is on this architecture
	const signalSetSize = 64 / 8
	for n := uintptr(32); n <= 34; n++ {
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, n, uintptr(unsafe.Pointer(&byDefault)), 0, signalSetSize, 0, 0)
		if errno != 0 {
			return fmt.Errorf("stop ignoring signal %d: %w", n, errno)
		}
	}
	return nil
}

func seal() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
