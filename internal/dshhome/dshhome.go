// Package dshhome knows where dsh keeps its own files: the one answer for who composes from them and who writes them.
package dshhome

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

// Variable is the environment variable that names the directory.
const Variable = "DSH_HOME"

// Dir returns the directory of dsh's own files, absolute: what DSH_HOME says, or ~/.dsh. It need not exist. Nothing but a
// relative DSH_HOME makes it depend on the working directory.
func Dir() (string, error) {
	dir := os.Getenv(Variable)
	if dir == "" {
		dir = "~/.dsh"
	}
	abs, err := Resolve(dir)
	if err != nil {
		return "", fmt.Errorf("%s is %s: %w", Variable, dir, err)
	}
	return abs, nil
}

// Resolve makes dir absolute, with ~ for the user's own directory, as a shell would have done where one was asked.
func Resolve(dir string) (string, error) {
	if rest, tilde := strings.CutPrefix(dir, "~"); tilde {
		if rest != "" && !os.IsPathSeparator(rest[0]) {
			return "", errors.New("of paths with a tilde, only ~ and ~/... are known")
		}
		home, err := userHome()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(home, rest)
	}
	return filepath.Abs(dir)
}

// Spare returns where the files of a run go if the home cannot be written, absolute: a directory for this user among those
// for temporary files. It is not made, and others may have made it.
func Spare() string {
	temp := os.TempDir()
	if !filepath.IsAbs(temp) { // TMPDIR is relative, and this is no file of the working directory
		temp = "/tmp"
	}
	return filepath.Join(temp, "dsh-"+strconv.Itoa(os.Getuid()))
}

// userHome asks the user database where the environment says nothing, as under env -i, or names no place.
func userHome() (string, error) {
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		return home, nil
	}
	if u, err := user.Current(); err == nil && filepath.IsAbs(u.HomeDir) {
		return u.HomeDir, nil
	}
	return "", fmt.Errorf("neither HOME nor the user database has an absolute path for user %d: set %s to one", os.Getuid(), Variable)
}
