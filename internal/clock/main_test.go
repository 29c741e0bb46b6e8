//go:build linux

package clock

import (
	"flag"
	"strconv"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/testserver"
)

var clockFlag = flag.Duration("clock", 45*time.Second, "how long to repeat each schedule; they run at once")

// schedules is how many tests there are.
const schedules = 3

func TestMain(m *testing.M) {
	flag.Parse()
	// They wait most of the time and keep no processor busy.
	if n, ok := flag.Lookup("test.parallel").Value.(flag.Getter); ok && n.Get().(int) < schedules {
		_ = flag.Set("test.parallel", strconv.Itoa(schedules))
	}
	testserver.Main(m)
}
