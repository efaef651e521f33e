//go:build tools

// Package helm names the programs that read what Windlass packs as a chart
// and as kustomizations, so that `go build` finds all of their dependencies
// in go.mod and go.sum.
package helm

import (
	_ "helm.sh/helm/v4/cmd/helm"
	_ "sigs.k8s.io/kustomize/kustomize/v5"
)
