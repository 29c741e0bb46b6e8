package cost

import (
	"maps"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/zktest"
)

// The meter counts what the server was sent, and an answer to each.
func TestMeter(t *testing.T) {
	bubble(t, func(w *world) {
		takers := w.mutexes(3)
		time.Sleep(pause)
		w.server.ResetRequests()
		w.meter.reset()
		for _, take := range takers {
			w.warmUp(take)
		}
		time.Sleep(longTimeout) // for some heartbeats
		want, got := make(map[zktest.Op]int), make(map[zktest.Op]int)
		for _, r := range w.server.Requests() {
			want[r.Op]++
		}
		for op, c := range w.meter.read() {
			if op == zktest.OpNotification {
				if c.requests != 0 || c.replies == 0 {
					t.Errorf("%v: %+v", op, c)
				}
				continue
			}
			got[op] = c.requests
			// Even a ping has a head of eight bytes; its answer has one of sixteen.
			if c.replies != c.requests || c.sent < 12*c.requests || c.received < 20*c.replies {
				t.Errorf("%v: %+v", op, c)
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("counted %v, the server had %v", got, want)
		}
	})
}
