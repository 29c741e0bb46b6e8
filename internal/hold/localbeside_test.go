package hold

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/kinds"
	"github.com/turnstile-go/turnstile/zktest"
)

// After Beside the turn is not handed over: the next waiter would hold together with the new lease, as
// a writer becomes a reader. It makes no difference if the lease is released while Beside is still
// under way.
func TestLocalBeside(t *testing.T) {
	write := &kinds.Kind{Name: "write", Prefixes: []string{kinds.PrefixWrite, kinds.PrefixRead}, Policy: func(kinds.Node) kinds.Policy {
		return kinds.Policy{Replaces: func(n kinds.Node) bool { return n.Prefix == kinds.PrefixWrite }}
	}}
	read := &kinds.Kind{Name: "read", Prefixes: []string{kinds.PrefixRead, kinds.PrefixWrite}, Policy: write.Policy}
	for what, early := range map[string]bool{"released after": false, "released meanwhile": true} {
		t.Run(what, func(t *testing.T) {
			dir := testserver.Path(t)
			p := newProcess(t, dir, place.Request{}, 10)
			var err error
			p.Local, err = NewLocal(p.q, place.Request{Kind: write}, LocalConfig{Handovers: 10})
			expect.NoError(t, err)
			w := p.hold(t)
			next := p.wait(t, 1)
			create := p.proxy.HoldRequest(zktest.On(zktest.OpCreate, dir))
			beside := make(chan outcome, 1)
			go func() {
				l, err := w.Beside(expect.Patient(t), place.Request{Kind: read})
				beside <- outcome{l, err}
			}()
			<-create.Hit()
			var g outcome
			if !early {
				create.Release()
				g = <-beside
			}
			released := w.StartRelease(expect.Patient(t), place.Done)
			if early {
				create.Release()
				g = <-beside
			}
			expect.NoError(t, g.err)
			expect.NoError(t, released.Wait())
			testserver.WaitChildren(t, dir, 2) // the reader's, and that of the waiter
			p.settle(t, 1)
			expect.NoError(t, g.lease.Err())
			giveBack(t, g.lease)
			giveBack(t, next.lease(t))
			testserver.WaitChildren(t, dir, 0)
		})
	}
}
