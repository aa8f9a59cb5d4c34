package compose

import (
	"os"
	"runtime"
	"strings"

	"dsh/internal/dshhome"
)

// Machine is what a plan is made for. It is data only, so that a plan can be made for another machine than this one.
type Machine struct {
	Platform string            // as process.platform says it: linux, darwin, win32
	Arch     string            // as process.arch says it: x64, arm64
	Env      map[string]string // what process.env shows
	Dir      string            // process.cwd()
	PID      int
	ExecPath string
	Home     string // $DSH_HOME, absolute
}

// ThisMachine describes the machine and the process that it is called in. It is an error that there is no telling where
// the files of dsh are.
func ThisMachine() (Machine, error) {
	m := Machine{Platform: platform(runtime.GOOS), Arch: arch(runtime.GOARCH), Env: map[string]string{}, PID: os.Getpid()}
	for _, kv := range os.Environ() {
		if k, v, ok := strings.Cut(kv, "="); ok && k != "" {
			m.Env[k] = v
		}
	}
	m.Dir, _ = os.Getwd()
	m.ExecPath, _ = os.Executable()
	var err error
	m.Home, err = dshhome.Dir()
	return m, err
}

// platform translates GOOS.
func platform(goos string) string {
	switch goos {
	case "windows":
		return "win32"
	case "solaris", "illumos":
		return "sunos"
	}
	return goos
}

// arch translates GOARCH.
func arch(goarch string) string {
	switch goarch {
	case "amd64":
		return "x64"
	case "386":
		return "ia32"
	}
	return goarch
}
