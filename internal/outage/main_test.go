package outage

import (
	"flag"
	"testing"

	"github.com/turnstile-go/turnstile/internal/testserver"
)

var (
	sessionsFlag = flag.Int("sessions", 100, "sessions for each outage of TestOutages")
	killsFlag    = flag.Int("kills", 2, "how often TestLeaderKilled kills the leader")
	tableFlag    = flag.Bool("table", false, "measure all that is in the tables, and not only what is promised")
	write        = flag.Bool("write", false, "write the tables into docs/performance.md")
)

func TestMain(m *testing.M) { testserver.Main(m) }
