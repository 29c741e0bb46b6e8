package ensembles

import (
	"flag"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

var (
	runsFlag  = flag.Int("runs", 0, "how often to run each scenario; 0: one scenario, once")
	writeFlag = flag.Bool("write", false, "write the rows of the scenarios that run into docs/measured/ensembles.md")
)

const (
	tick    = 2 * time.Second  // ZooKeeper's default
	timeout = 10 * time.Second // session.WithTimeout's default

	// margin is session.WithMargin's default. It is for threads that run late, so if this process was later,
	// sessions may be lost.
	margin = timeout / 10

	// survivable is the longest outage in which no session may be lost: see internal/tests/proofs/outages.
	survivable = 4500 * time.Millisecond
)

func TestMain(m *testing.M) { testserver.Main(m) }
