package lockz

import (
	"cmp"
	"container/list"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/turnstile-go/turnstile/session"
)

// records is what a recorder had at a moment.
type records struct {
	began      time.Time
	waits      []*acquisition
	holds      []*acquisition
	watches    []*watch
	losses     []lossJSON
	lossCount  int
	lostCount  int
	lastLost   sessionLossJSON
	stateSince time.Time // zero if it is not known
}

// given returns the acquisitions that hold, as far as the hooks have told, and have returned their
// leases. Before that, nobody but the acquisition may use its lease.
func (r *recorder) given() []*acquisition {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(values[*acquisition](&r.holds), func(a *acquisition) bool { return !a.given })
}

// over returns the acquisitions whose hold has ended although no hook may have told so yet. The leases
// look at the clock. If that shows a loss, the hooks are told later, in a goroutine of the manager.
func (r *recorder) over() map[*acquisition]bool {
	over := make(map[*acquisition]bool)
	for _, a := range r.given() {
		if a.lease.Err() != nil {
			over[a] = true
		}
	}
	return over
}

// copy returns what the recorder has. state is the manager's.
func (r *recorder) copy(state session.State) records {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := records{
		began:     r.began,
		waits:     values[*acquisition](&r.waits),
		holds:     values[*acquisition](&r.holds),
		watches:   values[*watch](&r.watches),
		losses:    append([]lossJSON{}, r.losses...),
		lossCount: r.lossCount,
		lostCount: r.lostCount,
		lastLost:  r.lastLost,
	}
	if r.changed.To == state {
		c.stateSince = r.changed.At
	}
	return c
}

func values[T any](l *list.List) []T {
	all := make([]T, 0, l.Len())
	for e := l.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(T))
	}
	return all
}

// liveSessions returns the ids of the sessions of all managers of this process that are recorded. The data of a
// node does not tell whose it is: processes in several containers can have the same host name and process id.
func liveSessions() map[int64]bool {
	ids := make(map[int64]bool)
	for _, m := range recorded() {
		if s := m.Status().Session; s != nil {
			ids[s.ID()] = true
		}
	}
	return ids
}

// snapshot is what the page shows of one manager. Holds and waits are described one by one, when they are written, since there
// can be very many of them: those of managerJSON are empty.
type snapshot struct {
	managerJSON
	records
	now       time.Time
	remaining float64
	here      map[int64]bool // the sessions of this process
}

// snapshotOf returns what m holds and waits for. It sends nothing and waits for nothing. here are the sessions of
// this process.
func snapshotOf(m *session.Manager, r *recorder, here map[int64]bool) *snapshot {
	over := r.over()
	status := m.Status()
	c := r.copy(status.State)
	c.holds = slices.DeleteFunc(c.holds, func(a *acquisition) bool { return over[a] })
	out := &snapshot{records: c, now: time.Now(), here: here}
	out.managerJSON = managerJSON{
		Ensemble:            status.Servers,
		State:               status.State.String(),
		StateSince:          c.stateSince,
		Server:              status.Server,
		TimeoutAskedSeconds: seconds(status.Timeout),
		Failure:             text(status.Failure),
		Recording:           c.began,
		Holds:               []holdJSON{},
		Waits:               []waitJSON{},
		Losses:              c.losses,
		LossCount:           c.lossCount,
		SessionLossCount:    c.lostCount,
	}
	if c.lostCount > 0 {
		out.LastSessionLoss = &out.lastLost
	}
	if s := status.Session; s != nil {
		out.remaining = seconds(s.Remaining())
		out.Session = &sessionJSON{ID: hex(s.ID()), TimeoutSeconds: seconds(s.Timeout()), RemainingSeconds: out.remaining}
	}
	return out
}

// ended is a context that has ended: with it, Token returns only what is known.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// heldLocks yields the holds, the oldest first.
func (s *snapshot) heldLocks(yield func(holdJSON) bool) {
	for _, a := range s.holds {
		token, _ := a.lease.Token(ended)
		h := holdJSON{
			Kind: a.info.Kind, Name: a.info.Name, Path: a.info.Path, Node: a.node, Weight: max(1, a.info.Weight),
			Since: a.granted, Seconds: seconds(s.now.Sub(a.granted)), Token: token,
			RemainingSeconds: s.remaining,
			Label:            a.info.Label, Traceparent: a.info.Traceparent,
		}
		if !yield(h) {
			return
		}
	}
}

// lock names a lock within the process.
type lock struct{ kind, path string }

func lockOf(info session.AcquireInfo) lock { return lock{info.Kind, info.Path} }

// sharesPlace reports whether the acquisitions of this process share one place in the queue on the
// servers, so that they wait for each other in the process.
func sharesPlace(info session.AcquireInfo) bool { return info.Local }

// ahead returns the watch of each acquisition, and the watch of each lock whose waiters share one
// contender. That watch belongs to the waiter that was the first, and goes on without that waiter.
func (c *records) ahead() (own map[*acquisition]*watch, shared map[lock]*watch) {
	own, shared = make(map[*acquisition]*watch), make(map[lock]*watch)
	for _, w := range c.watches {
		if w.of == nil {
			continue
		}
		own[w.of] = w
		if w.of.info.Local {
			shared[lockOf(w.of.info)] = w
		}
	}
	return own, shared
}

// waitsFor yields the acquisitions under way, the oldest first.
func (s *snapshot) waitsFor(yield func(waitJSON) bool) {
	own, shared := s.ahead()
	first := make(map[lock]int) // acquisitions of this process that come first and share a place
	for _, a := range s.holds {
		if sharesPlace(a.info) {
			first[lockOf(a.info)]++
		}
	}
	for _, a := range s.waits {
		out := waitJSON{
			Kind: a.info.Kind, Name: a.info.Name, Path: a.info.Path, Weight: max(1, a.info.Weight), Try: a.info.Try,
			Since: a.asked, Seconds: seconds(s.now.Sub(a.asked)),
			Label: a.info.Label, Traceparent: a.info.Traceparent,
		}
		w := own[a]
		if at := lockOf(a.info); sharesPlace(a.info) && !a.info.Try {
			w = cmp.Or(w, shared[at])
			out.AheadHere = first[at]
			first[at]++
		}
		if w != nil {
			out.Behind = w.behind(s.now, s.here)
		}
		if !yield(out) {
			return
		}
	}
}

// behind describes the node that is watched. here are the sessions of this process.
func (w *watch) behind(now time.Time, here map[int64]bool) *behindJSON {
	b := &behindJSON{Node: w.info.Path, Since: w.began, Seconds: seconds(now.Sub(w.began)), Ahead: w.info.Ahead}
	if n, ok := w.info.Known(); ok {
		b.ID, b.Label, b.Traceparent = n.ID, n.Label, n.Traceparent
		b.Here = here[n.Session]
	}
	return b
}

func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }

func hex(session int64) string { return fmt.Sprintf("0x%x", uint64(session)) }

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
