package place

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// earlyRestart is the RestartFrom of all tests in this package. It is set before any goroutine runs,
// since they read it without a lock. It is so high that only tests that want to reach it do.
const earlyRestart = 1000

func init() { RestartFrom = earlyRestart }
