// Command verify holds a bundle against every validator of the Operator
// Framework that needs nothing but the bundle, and fails if one of them has an
// error or a warning. The framework's own command tells of them and succeeds.
package main

import (
	"fmt"
	"os"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: verify BUNDLE KUBERNETES-VERSION")
		os.Exit(2)
	}
	bundle, err := manifests.GetBundleFromDir(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	validators := validation.DefaultBundleValidators.WithValidators(
		validation.OperatorHubV2Validator,
		validation.StandardCapabilitiesValidator,
		validation.StandardCategoriesValidator,
		validation.ObjectValidator,
		validation.OperatorGroupValidator,
		validation.AlphaDeprecatedAPIsValidator,
		validation.GoodPracticesValidator,
	)
	objects := append(bundle.ObjectsToValidate(), map[string]string{"k8s-version": os.Args[2]})
	errors, warnings := 0, 0
	for _, result := range validators.Validate(objects...) {
		for _, found := range result.Errors {
			fmt.Fprintf(os.Stderr, "error: %s: %s\n", result.Name, found.Error())
			errors++
		}
		for _, found := range result.Warnings {
			fmt.Fprintf(os.Stderr, "warning: %s: %s\n", result.Name, found.Error())
			warnings++
		}
	}
	fmt.Printf("%s: %d validators, %d errors, %d warnings\n", bundle.Name, len(validators), errors, warnings)
	if errors+warnings > 0 {
		os.Exit(1)
	}
}
