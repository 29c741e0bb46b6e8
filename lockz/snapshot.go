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

func values[T any](l *list.List) []T {
	all := make([]T, 0, l.Len())
	for e := l.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(T))
	}
	return all
}

type records struct {
	waits, holds []*acquisition
	watches      []*watch
	now          time.Time
	here         map[int64]bool
}

// managerOf returns what m holds and waits for. It sends nothing and waits for nothing. here are the sessions
// of this process: the data of a node does not tell whose it is, since processes in several containers can have the same
// host name and process id.
func managerOf(m *session.Manager, r *recorder, here map[int64]bool) managerJSON {
	status := m.Status()
	out := managerJSON{
		Ensemble:            status.Servers,
		State:               status.State.String(),
		Server:              status.Server,
		TimeoutAskedSeconds: seconds(status.Timeout),
		Failure:             text(status.Failure),
	}
	remaining := 0.0
	if s := status.Session; s != nil {
		remaining = seconds(s.Remaining())
		out.Session = &sessionJSON{ID: hex(s.ID()), TimeoutSeconds: seconds(s.Timeout()), RemainingSeconds: remaining}
	}
	c := r.copy(&out, status.State)
	c.now, c.here = time.Now(), here
	out.Holds, out.Waits = c.heldLocks(remaining), c.waitsFor()
	out.Elections = electionsOf(out.Holds, out.Waits)
	return out
}

// copy returns what the recorder has, and writes into out what it has counted. state is the manager's.
func (r *recorder) copy(out *managerJSON, state session.State) *records {
	r.mu.Lock()
	defer r.mu.Unlock()
	out.Recording, out.LossCount, out.SessionLossCount = r.began, r.lossCount, r.lostCount
	out.Losses = append([]lossJSON{}, r.losses...)
	if r.changed.To == state {
		out.StateSince = r.changed.At
	}
	if r.lostCount > 0 {
		last := r.lastLost
		out.LastSessionLoss = &last
	}
	// The clock can show a loss of which the hooks are told later. Before an acquisition has returned its lease, nobody else
	// may use that.
	holds := slices.DeleteFunc(values[*acquisition](&r.holds), func(a *acquisition) bool { return a.given && a.lease.Err() != nil })
	return &records{waits: values[*acquisition](&r.waits), holds: holds, watches: values[*watch](&r.watches)}
}

// ended is a context that has ended: with it, Token returns only what is known.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// heldLocks returns the holds, the oldest first.
func (c *records) heldLocks(remaining float64) []holdJSON {
	out := make([]holdJSON, 0, len(c.holds))
	for _, a := range c.holds {
		token, _ := a.lease.Token(ended)
		out = append(out, holdJSON{
			lockJSON: lockOf(a.info), Node: a.node, Weight: max(1, a.info.Weight), Token: token, RemainingSeconds: remaining,
			Since: a.granted, Seconds: seconds(c.now.Sub(a.granted)), Traceparent: a.info.Traceparent,
		})
	}
	return out
}

func lockOf(a session.AcquireInfo) lockJSON { return lockJSON{a.Kind, a.Name, a.Path, a.Label} }

// placeOf names the place in the queue that acquisitions of this process can share.
func placeOf(a session.AcquireInfo) lockJSON { return lockJSON{Kind: a.Kind, Path: a.Path} }

// ahead returns the watch of each acquisition, and the watch of each lock whose waiters share one
// contender. That watch belongs to the waiter that was the first, and goes on without that waiter.
func (c *records) ahead() (own map[*acquisition]*watch, shared map[lockJSON]*watch) {
	own, shared = make(map[*acquisition]*watch), make(map[lockJSON]*watch)
	for _, w := range c.watches {
		if w.of == nil {
			continue
		}
		own[w.of] = w
		if w.of.info.Local {
			shared[placeOf(w.of.info)] = w
		}
	}
	return own, shared
}

// waitsFor returns the acquisitions under way, the oldest first.
func (c *records) waitsFor() []waitJSON {
	own, shared := c.ahead()
	first := make(map[lockJSON]int) // acquisitions of this process that come first, and share a place in the queue
	for _, a := range c.holds {
		if a.info.Local {
			first[placeOf(a.info)]++
		}
	}
	all := make([]waitJSON, 0, len(c.waits))
	for _, a := range c.waits {
		out := waitJSON{
			lockJSON: lockOf(a.info), Weight: max(1, a.info.Weight), Try: a.info.Try,
			Since: a.asked, Seconds: seconds(c.now.Sub(a.asked)), Traceparent: a.info.Traceparent,
		}
		w := own[a]
		if at := placeOf(a.info); a.info.Local && !a.info.Try {
			w = cmp.Or(w, shared[at])
			out.AheadHere = first[at]
			first[at]++
		}
		if w != nil {
			out.Behind = c.behind(w)
		}
		all = append(all, out)
	}
	return all
}

// behind describes the node that is watched.
func (c *records) behind(w *watch) *behindJSON {
	b := &behindJSON{Node: w.info.Path, Since: w.began, Seconds: seconds(c.now.Sub(w.began)), Ahead: w.info.Ahead}
	if n, ok := w.info.Known(); ok {
		b.ID, b.Label, b.Traceparent = n.ID, n.Label, n.Traceparent
		b.Here, b.Holds = c.here[n.Session], w.info.Holds()
	}
	return b
}

// electionsOf returns which candidate leads each election of which this process has one, as far as that is known.
func electionsOf(holds []holdJSON, waits []waitJSON) []electionJSON {
	all := []electionJSON{}
	for _, h := range holds {
		if h.Kind == "election" {
			all = append(all, electionJSON{Name: h.Name, Path: h.Path, Here: true, Label: h.Label})
		}
	}
	for _, w := range waits {
		if w.Kind == "election" {
			e := electionJSON{Name: w.Name, Path: w.Path}
			if b := w.Behind; b != nil && b.Holds {
				e.Here, e.Leader, e.Label = b.Here, b.ID, b.Label
			}
			all = append(all, e)
		}
	}
	return all
}

func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }

func hex(session int64) string { return fmt.Sprintf("0x%x", uint64(session)) }

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
