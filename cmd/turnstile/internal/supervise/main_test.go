//go:build linux || darwin || freebsd

package supervise

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// The guards and starters that Run starts in tests are this binary too.
func TestMain(m *testing.M) {
	if IsHelper() {
		os.Exit(Helper(nil))
	}
	goleak.VerifyTestMain(m)
}
