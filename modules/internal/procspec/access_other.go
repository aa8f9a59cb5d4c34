//go:build !unix

package procspec

import "io/fs"

func searchable(string) error { return nil }

func executable(_ string, info fs.FileInfo) bool { return info.Mode().IsRegular() }
