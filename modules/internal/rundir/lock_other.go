//go:build !unix

package rundir

import (
	"errors"
	"io/fs"
	"os"
)

const noFollow = 0

func tryLock(*os.File) error { return errors.ErrUnsupported }

func writable(string) error { return nil }

func ours(fs.FileInfo) bool { return true }
