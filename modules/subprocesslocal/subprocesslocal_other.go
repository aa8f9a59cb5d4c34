//go:build !unix

package subprocesslocal

import (
	"errors"
	"fmt"
)

// New refuses: this platform is not among the module's.
func New(Params) (Result, error) {
	return Result{}, fmt.Errorf("subprocess-local: %w", errors.ErrUnsupported)
}

// PrepareHost has nothing to do here.
func PrepareHost() error { return nil }
