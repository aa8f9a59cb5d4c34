package rundir

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"dsh/internal/dshhome"
)

const tempName = "tmp"

const maxPlainName = 100

// plain reports whether a session's id, which is not empty, can be the name of a directory.
func plain(session string) bool {
	const letters, marks = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", "._-"
	return len(session) <= maxPlainName && strings.Trim(session, letters+marks) == "" && !strings.ContainsAny(session[:1], marks)
}

// Temp returns the directory for temporary files of a session, made when it is not there. It lasts until RemoveTemp.
// Any user may write in it, but only this one can get there.
func (d *Dir) Temp(session string) (string, error) {
	path, err := d.make()
	if err != nil {
		return "", err
	}
	all := filepath.Join(path, tempName)
	if err := os.Mkdir(all, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	dir := filepath.Join(all, tempDirName(session))
	err = os.Mkdir(dir, 0o700)
	if errors.Is(err, os.ErrExist) {
		return dir, nil
	}
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o777|os.ModeSticky) // Mkdir's mode is subject to the umask
}

// RemoveTemp removes the temporary files of all sessions.
func (d *Dir) RemoveTemp() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lock == nil {
		return nil
	}
	return os.RemoveAll(filepath.Join(d.path, tempName))
}

// Places returns the directories that hold the files of all hosts with this home: the home, and the other place that is
// used where the home cannot be written.
func Places(home string) []string { return []string{home, dshhome.Spare()} }

func tempDirName(session string) string {
	switch {
	case session == "":
		return "no-session"
	case plain(session):
		return session
	}
	sum := sha256.Sum256([]byte(session))
	return "session-" + hex.EncodeToString(sum[:16])
}
