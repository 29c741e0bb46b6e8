//go:build linux

package clockoverlap

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
)

var ratesFlag = flag.String("rates", "1.02,1.2", "rates of the servers' clocks to try, by this machine's")

const (
	// The margin is enough up to the one rate. It cannot be enough from the other on.
	holdsUpTo  = 1.02
	breaksFrom = 1.2
)

// The servers' clocks run faster or slower than the client's, and the schedule is the first or now and then
// the third.
func TestRates(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	for _, text := range strings.Split(*ratesFlag, ",") {
		rate, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			t.Parallel()
			s := schedule{kinds: kinds(4, 10, 20), styles: []style{quiet, writes, writes, busy}, oneWay: 0.5, run: cutAnyhow}
			switch results := s.test(t, startEnsemble(t, rate, rateEnviron(rate)), *repeatFlag); {
			case rate <= holdsUpTo:
				results.mustHold(t)
			case rate >= breaksFrom:
				results.mustBreak(t)
			default:
				results.report(t)
			}
		})
	}
}

func cutAnyhow(ctx context.Context, e *ensemble, c *contest, bg *sync.WaitGroup, oneWay bool) (*trap, error) {
	if rand.IntN(5) == 0 {
		return leaderStoodStill(ctx, e, c, bg, oneWay)
	}
	return cutBeforeAnswer(ctx, e, c, bg, oneWay)
}
