// Package versions_test lets two versions of this module use the same locks: the present one, and the one before, whose
// commit is in testdata/commit. It is built from the history of the repository. docs/upgrade.md is for users
// who do the same, and says what does not work together.
package versions_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/conformance/versions/driver"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

func TestMain(m *testing.M) {
	if os.Getenv(driver.ServersEnv) != "" {
		if err := driver.Main(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	testserver.Main(m, removeBefore)
}
