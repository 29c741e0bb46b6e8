package hold

import (
	"errors"
	"testing"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/kinds"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A try for an unfair lock that waits for a kept place has its turn among the goroutines of its Queue until it has an answer. So
// it gives up its node if that takes too long.
func TestUnfairTryWaitsInTurn(t *testing.T) {
	dir := testserver.Path(t)
	keeper := newKeeper(t, dir, 0)
	keeper.kept(t)
	proxy := testserver.Proxy(t)
	m := testserver.Connect(t, proxy.Addr(), session.WithTimeout(testserver.Patience))
	q, err := place.New((*core.Manager)(m), dir)
	expect.NoError(t, err)
	r := place.Request{Kind: &kinds.Kind{Name: "unfair", Prefixes: []string{kinds.PrefixLock}, Unfair: true}}

	leaves := keeper.proxy.HoldRequest(zktest.On(zktest.OpDelete, dir))
	first := make(chan error, 1)
	go func() {
		_, err := q.TryAcquire(expect.Patient(t), r)
		first <- err
	}()
	<-leaves.Hit() // the keeper has been told of the node of the first try
	zktest.Eventually(t, testserver.Patience, "the first try to watch the kept place", func() bool {
		return proxy.Count(zktest.On(zktest.OpGetData, dir)) > 1
	})
	enters := proxy.HoldReply(zktest.On(zktest.OpCreate, dir))
	second := make(chan error, 1)
	for over := false; !over; {
		go func() {
			_, err := q.TryAcquire(expect.Patient(t), r)
			second <- err
		}()
		select {
		case err := <-second:
			wantBusy(t, err)
			select {
			case err := <-first:
				wantBusy(t, err)
				over = true
			default:
			}
		case <-enters.Hit(): // the first try has had its answer, or it never gets its turn again
			wantBusy(t, <-first)
			enters.Release()
			wantBusy(t, <-second)
			over = true
		}
	}
	leaves.Release()
	testserver.WaitChildren(t, dir, 0)
}

func wantBusy(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, place.ErrBusy) {
		t.Errorf("try: %v", err)
	}
}
