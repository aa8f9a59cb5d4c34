package cli

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// kernel returns the kernel's version, or "" where there is no telling.
func kernel() string {
	text, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return strings.TrimSpace(string(text))
}

// writable reports whether directories can be made in dir, or where it is to be made. It makes one to know, and removes it:
// permissions alone do not tell.
func writable(dir string) bool {
	for {
		probe, err := os.MkdirTemp(dir, ".dsh-doctor-")
		if err == nil {
			return os.Remove(probe) == nil
		}
		parent := filepath.Dir(dir)
		if !errors.Is(err, fs.ErrNotExist) || parent == dir {
			return false
		}
		if _, err := os.Lstat(dir); err == nil { // it is there and takes nothing
			return false
		}
		dir = parent
	}
}

// lookAbsolute looks for a program as rows do: in the absolute directories of PATH.
func lookAbsolute(name string) (path string, missing bool) {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(dir) {
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return path, false
			}
		}
	}
	return "", true
}

// install returns the command that installs a package on this machine.
func install(name string) string {
	for _, manager := range []struct{ program, command string }{
		{"apt-get", "apt-get install "},
		{"dnf", "dnf install "},
		{"apk", "apk add "},
		{"pacman", "pacman -S "},
		{"zypper", "zypper install "},
		{"brew", "brew install "},
	} {
		if _, missing := lookAbsolute(manager.program); !missing {
			return manager.command + name
		}
	}
	return "install " + name
}

// blockedNamespaces returns the command that lets ordinary users make the namespaces that bwrap needs, if a setting of the
// kernel forbids it.
func blockedNamespaces() string {
	for _, s := range []struct{ name, blocked, open string }{
		{"kernel.unprivileged_userns_clone", "0", "1"},
		{"kernel.apparmor_restrict_unprivileged_userns", "1", "0"},
		{"user.max_user_namespaces", "0", "10000"},
	} {
		text, err := os.ReadFile("/proc/sys/" + strings.ReplaceAll(s.name, ".", "/"))
		if err == nil && strings.TrimSpace(string(text)) == s.blocked {
			return "sysctl -w " + s.name + "=" + s.open
		}
	}
	return ""
}
