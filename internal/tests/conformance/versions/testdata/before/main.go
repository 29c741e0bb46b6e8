// The process of the version before.
package main

import (
	"fmt"
	"os"

	"github.com/turnstile-go/turnstile/internal/tests/conformance/versions/driver"
)

func main() {
	if err := driver.Main(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
