//go:build tools

// Package registry names the program that images are pushed to, so that
// `go build` finds all of its dependencies in go.mod and go.sum.
package registry

import (
	_ "github.com/distribution/distribution/v3/cmd/registry"
)
