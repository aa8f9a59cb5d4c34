//go:build !unix && !windows

package sessionjsonl

import (
	"errors"
	"os"
)

func lock(string) (*os.File, error) { return nil, errors.ErrUnsupported }
