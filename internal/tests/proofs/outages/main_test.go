package outages

import (
	"cmp"
	"flag"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

var (
	sessionsFlag = flag.Int("sessions", 0, "sessions for each outage of TestOutages; 0: 20, or 100 where long tests run")
	killsFlag    = flag.Int("kills", 2, "how often TestLeaderKilled kills the leader")
	tableFlag    = flag.Bool("table", false, "measure all that is in the tables, and not only what is promised")
	write        = flag.Bool("write", false, "write the tables into docs")
)

// sessions is how many sessions go through each outage of TestOutages.
func sessions() int { return cmp.Or(*sessionsFlag, longtest.Pick(20, 100)) }

func TestMain(m *testing.M) { testserver.Main(m) }
