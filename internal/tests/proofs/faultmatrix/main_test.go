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
	// timeout is the session timeout of the clients that the faults meet. A fault that lasts does so
	// for half of it, or twice.
	timeout = 2 * time.Second
	// longTimeout is the session timeout of all other clients, which observe.
	longTimeout = 40 * time.Second
	// patience bounds a whole cell.
	patience = 4 * testserver.Patience
)

func TestMain(m *testing.M) {
	flag.Parse()
	if *every < 0 || *sharing < 1 {
		fmt.Fprintln(os.Stderr, "-every must not be negative, and -sharing must be at least 1")
		os.Exit(2)
	}
	sites.shares = tickets(*sharing)
	// Cells mostly wait, and not for the processor: how many run at a time is up to the sites.
	if err := flag.Set("test.parallel", "1000000"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	testserver.Main(m, closeSites)
}
