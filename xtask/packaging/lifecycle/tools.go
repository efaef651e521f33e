//go:build tools

// Package lifecycle names the programs of the Operator Lifecycle Manager, so
// that `go build` finds all of their dependencies in go.mod and go.sum.
package lifecycle

import (
	_ "github.com/operator-framework/operator-lifecycle-manager/cmd/catalog"
	_ "github.com/operator-framework/operator-lifecycle-manager/cmd/olm"
)
