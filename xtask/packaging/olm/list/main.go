// Command list prints the versions that a served catalogue offers, as the
// Operator Lifecycle Manager asks for them: PACKAGE CHANNEL BUNDLE REPLACES.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/operator-framework/operator-registry/pkg/client"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: list ADDRESS")
		os.Exit(2)
	}
	if err := list(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func list(address string) error {
	registry, err := client.NewClient(address)
	if err != nil {
		return err
	}
	defer registry.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	healthy, err := registry.HealthCheck(ctx, 30*time.Second)
	if err != nil {
		return err
	}
	if !healthy {
		return fmt.Errorf("%s does not serve", address)
	}
	bundles, err := registry.ListBundles(ctx)
	if err != nil {
		return err
	}
	for bundle := bundles.Next(); bundle != nil; bundle = bundles.Next() {
		fmt.Println(bundle.PackageName, bundle.ChannelName, bundle.CsvName, bundle.Replaces)
	}
	return bundles.Error()
}
