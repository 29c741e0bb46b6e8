package locktest

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A connection that breaks at a request, or before its answer has come, costs a call no more than time. The call has
// as many nodes as without, and its release leaves none.
func reconnectAtEachRequest(t *testing.T, s Subject) {
	eachWay(t, s, cut, func(w *world, f faulty) {
		was := f.p.session()
		h := f.run(func() {})
		if h == nil {
			return
		}
		if f.p.session() != was {
			w.Error("another session")
		}
		w.Want("release", h.end(), nil)
	})
}

// A session that is lost while a call waits, with a request or its answer on the way, is no error: the call goes on in
// the next one.
func loseSessionAtEachRequest(t *testing.T, s Subject) {
	eachWay(t, s, held, func(w *world, f faulty) {
		was := f.p.session()
		h := f.run(func() {
			w.Must(w.Expire(w.Context(), was))
			f.fault.Release()
		})
		f.fault.Release()
		if h == nil {
			return
		}
		var lost error
		if h.err() != nil && s.Gate {
			lost = session.ErrLost
		}
		w.Want("held in the next session", h.err(), lost)
		w.Want("release", h.end(), lost)
	})
}

// faulty is a call that meets a fault.
type faulty struct {
	p, rival *process
	call     call
	fault    *zktest.Fault
	release  func() // of the rival, if it holds
}

// eachWay walks through the requests of the calls, while the lock is free and while it is not.
func eachWay(t *testing.T, s Subject, points []point, f func(*world, faulty)) {
	t.Helper()
	for _, busy := range []bool{false, true} {
		walk(t, s, busy, points, func(w *world, c call, arm func(*process) *zktest.Fault) {
			x := faulty{p: w.process(), rival: w.rival(), call: c}
			if busy {
				x.release = x.rival.holds()
			}
			x.fault = arm(x.p)
			f(w, x)
			w.gone("in the end", 0)
			w.usable(x.p, x.rival)
		})
	}
}

// run makes the call, and calls struck when the fault has struck before the call has returned. It returns the hold, or
// nil if a try was busy.
func (f *faulty) run(struck func()) *hold {
	p := f.p
	p.Helper()
	ctx, got := p.patient()
	call := f.call.of(p).begin(ctx)
	told := false
	look := func() {
		synctest.Wait()
		if len(call.result) == 0 && !told && hit(f.fault) {
			told = true
			struck()
			p.Pass(time.Second) // in which it connects again, and is behind the rival
		}
	}
	look()
	if f.release != nil && !f.call.try {
		f.release()
		look()
	}
	h, err := call.wait()
	got()
	if f.release != nil && f.call.try {
		p.Want("a try of a busy lock", err, queue.ErrBusy)
		f.release()
		return nil
	}
	p.Must(err)
	if nodes := p.nodes(); len(nodes) != p.subject.Nodes && f.release == nil && h.err() == nil {
		p.Errorf("nodes %q, want %d", nodes, p.subject.Nodes)
	}
	return h
}

// A waiter whose node is deleted by hand enters again.
func deleteWaiter(t *testing.T, s Subject) {
	eachCall(t, s, func(w *world, c call) {
		if c.try {
			return
		}
		p, rival := w.process(), w.rival()
		release := rival.holds()
		before := w.nodes()
		call := p.waits(w.Context(), c.of(p))[0]
		for _, node := range added(before, w.nodes()) {
			w.Remove(node)
		}
		w.Pass(time.Second)
		if again := added(before, w.nodes()); len(again) == 0 {
			w.Error("no node after the deletion")
		}
		release()
		h, err := call.wait()
		w.Must(err)
		w.Want("release", h.end(), nil)
		w.usable(p, rival)
	})
}

// added returns what is in the second list and not in the first.
func added(before, after []string) []string {
	return slices.DeleteFunc(after, func(p string) bool { return slices.Contains(before, p) })
}
