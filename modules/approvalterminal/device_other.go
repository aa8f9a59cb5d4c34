//go:build !unix

package approvalterminal

import "errors"

func open() (device, error) { return nil, errors.New("this platform has no /dev/tty") }
