// Package dsh embeds the deployment layer, the cordis.patch.yaml beside it. Only cmd/dsh imports it.
package dsh

import _ "embed"

// Patch is the deployment layer.
//
//go:embed cordis.patch.yaml
var Patch []byte
