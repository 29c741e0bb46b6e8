package cli

import (
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

// programEnv is set in the processes that are turnstile itself in place of its tests. The guards and
// starters that they run are this binary too.
const programEnv = "TURNSTILE_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Args[0] == "turnstile-guard" || os.Getenv(programEnv) != "" {
		os.Exit(Main())
	}
	// A process that was started by nohup ignores SIGHUP, and so would the processes that the tests
	// start, unless the test binary handles it.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	testserver.Main(m)
}
