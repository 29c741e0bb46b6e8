package core

import (
	"testing"

	"github.com/turnstile-go/turnstile/hooks"
)

// A subscription ends with the change to Closed, also without a cancel. So a closed manager keeps no function of the program.
func TestSubscriptionsEndWithClosed(t *testing.T) {
	var ss subscribers
	got := make(chan hooks.State, 1)
	listen := func(c hooks.Change) { got <- c.To }
	ss.add(listen, nil)
	cancel := ss.add(func(hooks.Change) {}, nil)
	ss.publish(hooks.Change{To: hooks.Closed})
	if to := <-got; to != hooks.Closed || len(ss.all) != 0 {
		t.Errorf("%v; %d subscriptions have not ended", to, len(ss.all))
	}
	ss.add(listen, &hooks.Change{To: hooks.Closed})
	if to := <-got; to != hooks.Closed || len(ss.all) != 0 {
		t.Errorf("%v; %d subscriptions to a closed manager", to, len(ss.all))
	}
	cancel()
}
