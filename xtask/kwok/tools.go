//go:build tools

// Package kwok names the program that plays nodes, so that `go build` finds
// all of its dependencies in go.mod and go.sum.
package kwok

import _ "sigs.k8s.io/kwok/cmd/kwok"
