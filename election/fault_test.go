package election_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// shortTimeout is the session timeout of candidates that are cut off.
const shortTimeout = time.Second

// remote is a candidate behind a proxy.
type remote struct {
	*candidate
	proxy *zktest.Proxy
}

func campaignFar(tb testing.TB, terms chan *served, path, id string) remote {
	tb.Helper()
	proxy := testserver.Proxy(tb)
	m := testserver.Connect(tb, proxy.Addr(), session.WithTimeout(shortTimeout))
	return remote{campaignTo(tb, terms, m, path, id), proxy}
}

// The context of a leader that is cut off ends before another candidate leads, in each direction of the cut.
// When the leader is back, it campaigns again.
func TestCutOff(t *testing.T) {
	t.Parallel()
	cuts := []zktest.Direction{zktest.Both, zktest.ToServer, zktest.ToClient}
	for _, cut := range cuts[:longtest.Pick(1, len(cuts))] {
		dir := testserver.Path(t)
		a := campaignFar(t, make(chan *served), dir, "a")
		first := a.leads(t)
		b := campaign(t, connect(t), dir, "b")
		testserver.WaitChildren(t, dir, 2)
		a.proxy.Blackhole(cut)
		second := b.leads(t)
		if first.ctx.Err() == nil || a.IsLeader() {
			t.Errorf("cut off %v: two leaders", cut)
		}
		wantErr(t, "cause", first.over(t), session.ErrLost)
		a.proxy.Heal()
		testserver.WaitChildren(t, dir, 2)
		second.end <- nil
		a.leads(t)
	}
}

// Whatever happens to the connections of the candidates, one leads at a time, terms grow, and there is always
// another leader after a while.
func TestOneLeaderUnderFaults(t *testing.T) {
	longtest.Only(t)
	const terms = 25
	dir := testserver.Path(t)
	all := make(chan *served)
	var candidates []remote
	for _, id := range []string{"a", "b", "c", "d"} {
		candidates = append(candidates, campaignFar(t, all, dir, id))
	}
	faults := map[string]func(p *zktest.Proxy){
		"disconnect":    func(p *zktest.Proxy) { p.Disconnect() },
		"refuse":        func(p *zktest.Proxy) { p.Refuse(true); p.Disconnect() },
		"cut off":       func(p *zktest.Proxy) { p.Blackhole(zktest.Both) },
		"no requests":   func(p *zktest.Proxy) { p.Blackhole(zktest.ToServer) },
		"no replies":    func(p *zktest.Proxy) { p.Blackhole(zktest.ToClient) },
		"slow":          func(p *zktest.Proxy) { p.Delay(shortTimeout / 3) },
		"create is cut": func(p *zktest.Proxy) { p.CutAfterCommit(zktest.On(zktest.OpCreate, dir)) },
	}
	var r referee
	for range terms {
		s := receive(t, "a leader", all)
		r.enter(t, s)
		// The leader, and perhaps others.
		for _, c := range candidates {
			if c.id != s.id && rand.N(2) > 0 {
				continue
			}
			for name, fault := range faults { // a random one
				t.Logf("term %d of %s: %s: %s", s.number, s.id, c.id, name)
				fault(c.proxy)
				break
			}
		}
		// A fault that does not end the term leaves that to the leader.
		select {
		case <-s.ctx.Done():
		case <-time.After(2 * shortTimeout):
			select {
			case s.end <- nil:
			case <-s.ctx.Done():
			}
		}
		for _, c := range candidates {
			c.proxy.Heal()
			c.proxy.Refuse(false)
			c.proxy.Delay(0)
		}
	}
}
