//go:build linux

package clockoverlap

import (
	"flag"
	"strconv"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

var (
	clockFlag  = flag.Duration("clock", 45*time.Second, "how long to repeat each schedule with right clocks")
	repeatFlag = flag.Duration("wrongclock", time.Second, "how long to repeat a schedule for each wrong clock; a try takes half a minute")
)

// atOnce is how many ensembles run at once.
const atOnce = 3

func TestMain(m *testing.M) {
	flag.Parse()
	// They wait most of the time and keep no processor busy.
	if n, ok := flag.Lookup("test.parallel").Value.(flag.Getter); ok && n.Get().(int) < atOnce {
		_ = flag.Set("test.parallel", strconv.Itoa(atOnce))
	}
	testserver.Main(m)
}
