package faultmatrix

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

const (
	// timeout is the session timeout of the client that the faults meet. A fault that lasts does so
	// for half of it, or twice.
	timeout = 2 * time.Second
	// longTimeout is the session timeout of all other clients.
	longTimeout = 40 * time.Second
	// patience bounds a whole cell.
	patience = 4 * testserver.Patience
	// atATime is how many cells share the server at a time. They mostly wait, and not for the processor.
	atATime = "24"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", atATime); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	testserver.Main(m)
}
