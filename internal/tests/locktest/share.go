package locktest

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The calls of one object that wait share one node, also when the first of them is cancelled or the node is deleted. All
// of the others get the lock.
func sharedPlace(w *world) {
	for _, disturb := range []func(cancel func(), node string){
		func(func(), string) {},
		func(cancel func(), _ string) { cancel() },
		func(_ func(), node string) { w.Remove(node) },
	} {
		p, rival := w.process(), w.rival()
		release := rival.holds()
		before := w.nodes()
		ctx, cancel := context.WithCancel(w.Context())
		first := p.waits(ctx, p.ways()[0])[0]
		all := p.waits(w.Context(), append(p.waiting(), p.waiting()...)...)
		nodes := added(before, w.nodes())
		if len(nodes) != 1 {
			w.Fatalf("%d calls of one object have the nodes %q, want one", len(all), nodes)
		}
		disturb(cancel, nodes[0])
		synctest.Wait()
		if nodes = added(before, w.nodes()); len(nodes) != 1 {
			w.Errorf("nodes %q after that, want one", nodes)
		}
		release()
		if h, err := first.wait(); err == nil {
			w.Want("release", h.end(), nil)
		} else {
			w.Want("the cancelled call", err, context.Canceled)
		}
		for range all { // in any order, if they hold together
			h, err := all[0].wait()
			all = all[1:]
			w.Must(err)
			w.Want("release", h.end(), nil)
		}
		cancel()
		w.usable(p, rival)
	}
}

// A place that was used is kept, and the next call takes it without a request. It goes when another process comes, and
// when nobody has used it for long.
func keptPlace(t *testing.T, s Subject) {
	eachCall(t, s, func(w *world, c call) {
		p := w.process()
		p.wantKept()
		w.ResetRequests()
		h := p.take(c.of(p))
		w.Want("release", h.end(), nil)
		if n := w.Count(of(p.session())); n != 0 && !(c.try && s.Nodes > 1) { // a try of several looks at all of them first
			w.Errorf("%d requests to take a kept place, and to release it: %v", n, w.Requests())
		}
		rival := w.rival()
		way := rival.ways()[0]
		if c.try && c.index < len(rival.ways()) {
			way = c.of(rival)
		}
		taken := rival.take(way)
		w.wantNodes("of the rival", s.Nodes)
		w.Want("the rival's release", taken.end(), nil)
		w.usable(p, rival)
	})
}

// A kept place that is lost, or whose time is over, is gone, and the next call does without.
func keptPlaceEnds(t *testing.T, s Subject) {
	ends := map[string]func(*process){"time": func(p *process) { p.Pass(2 * KeptFor) }}
	for what, lose := range losses {
		if !strings.HasPrefix(what, "node ") { // no place is kept across a reconnect
			ends[what] = lose
		}
	}
	for what, end := range ends {
		t.Run(what, func(t *testing.T) {
			eachCall(t, s, func(w *world, c call) {
				p := w.process()
				p.wantKept()
				end(p)
				w.Pass(time.Second)
				if what != "node" {
					w.gone("the kept place", 0)
				}
				h := p.take(c.of(p))
				w.Want("held", h.err(), nil)
				w.Want("release", h.end(), nil)
				w.usable(p, w.rival())
			})
		})
	}
}

// wantKept takes the lock, releases it, and wants the place to be kept.
func (p *process) wantKept() {
	p.Helper()
	p.holds()()
	synctest.Wait()
	p.wantNodes("a kept place", p.subject.Nodes)
}
