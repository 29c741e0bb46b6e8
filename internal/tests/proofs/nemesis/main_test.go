//go:build linux

package nemesis

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

var (
	scheduleFlag = flag.String("schedule", "", "the schedules to run in full, by their names or by those of their groups, with commas between, or all; default: a short form of some")
	forFlag      = flag.Duration("for", 0, "how long a schedule goes on that repeats itself; 0: as long as it needs")
	seedFlag     = flag.Uint64("seed", 0, "of attack and soak: of the strikes, and of what the workers do; 0: a new one")
	locksFlag    = flag.String("locks", "", "of attack and soak: the locks to attack, with commas between; default: all")
	rivalFlag    = flag.Bool("rival", false, "of attack: attack the Lock of go-zookeeper instead")
	tickFlag     = flag.Duration("tick", 250*time.Millisecond, "of attack and soak: of the servers; the default is far below ZooKeeper's own, so that more happens in a minute")
	turnFlag     = flag.Int("turn", -1, "of the short forms: run every third, beginning by this number; -1: all")
	writeFlag    = flag.Bool("write", false, "write the rows of the schedules into docs/measured/nemesis.md")
)

func TestMain(m *testing.M) {
	if text := os.Getenv(workerEnv); text != "" {
		if err := workerMain(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	testserver.Main(m)
}
