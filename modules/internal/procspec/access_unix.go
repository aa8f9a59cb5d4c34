//go:build unix

package procspec

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// searchable asks whether this process, with its effective ids, may enter dir or run the file at that path.
func searchable(path string) error {
	return unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS)
}

func executable(path string, info fs.FileInfo) bool {
	return info.Mode().IsRegular() && searchable(path) == nil
}
