//go:build tools

// Package olm names the programs that read bundles and catalogues, so that
// `go build` finds all of their dependencies in go.mod and go.sum.
package olm

import (
	_ "github.com/operator-framework/operator-registry/cmd/opm"
)
