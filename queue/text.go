package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/turnstile-go/turnstile/session"
)

// view is what a waiting contender knows of those ahead by its watches. It does not change.
type view struct {
	Verdict
	q     *Queue
	s     *session.Session
	on    []*session.Watch // on those of Verdict.Watch; nil until answered
	own   *session.Watch
	since time.Time
	limit int // of a semaphore, or 0
}

func (c *contender) show(v *Verdict, on []*session.Watch) {
	c.view = &view{Verdict: *v, q: c.q, s: c.s, on: on, own: c.own, since: c.since}
	if c.me.Prefix == PrefixLease {
		c.view.limit = c.policy.Slack + c.me.Weight
	}
	c.r.Shown.show(c.view)
}

// Waiting tells others what an acquisition waits for: see [Queue.Why]. For makers of locks.
type Waiting struct{ view atomic.Pointer[view] }

func (w *Waiting) show(v *view) {
	if w != nil {
		w.view.Store(v)
	}
}

// Why says what the acquisition with this Shown waits for, in a WaitError without its Err. It asks no server. w may
// be nil. For makers of locks.
func (q *Queue) Why(w *Waiting) WaitError {
	q.made()
	if w == nil {
		return q.why(nil)
	}
	return q.why(w.view.Load())
}

func (q *Queue) explain(ctx context.Context, err error, v *view) error {
	var wait *WaitError
	if err == nil || ctx.Err() == nil || !errors.Is(err, ctx.Err()) || errors.As(err, &wait) {
		return err
	}
	out := q.why(v)
	out.Err = err
	return &out
}

var errNotConnected = errors.New("not connected")

func (q *Queue) why(v *view) (out WaitError) {
	status := q.m.Status()
	switch {
	case status.State != session.Connected && status.Failure == nil:
		return WaitError{Connection: errNotConnected, Reason: errNotConnected.Error()}
	case status.State != session.Connected:
		return WaitError{Connection: status.Failure, Reason: fmt.Sprintf("%v: %v", errNotConnected, status.Failure)}
	}
	if v != nil {
		out = v.reason(time.Now())
	}
	if status.Failure != nil {
		out.Connection = status.Failure
		out.Reason = strings.TrimSuffix(status.Failure.Error()+"; "+out.Reason, "; ")
	}
	return out
}

func (v *view) forgetBut(keep []*session.Watch) {
	if v != nil {
		for _, w := range v.on {
			if w != nil && !slices.Contains(keep, w) {
				w.Forget()
			}
		}
	}
}

func (v *view) stands(i int) bool { return v.on[i] == nil || v.on[i].Event() == session.WatchPending }

// named returns the contender that texts name: the holder if it is known (holds), or the nearest ahead, or -1.
func (v *view) named() (i int, holds bool, standing int) {
	i = -1
	for j := range v.on {
		if !v.stands(j) {
			continue
		}
		if standing++; standing == 1 {
			holds = v.isFirst(j)
		}
		if i < 0 || !holds {
			i = j
		}
	}
	return i, holds, standing
}

func (v *view) isFirst(i int) bool {
	for j, one := range v.on[:i] { // a watch also ends when data changes, or with the connection
		if v.Watch[j].Moves || one == nil || one.Event() != session.WatchDeleted {
			return false
		}
	}
	return i < v.Head
}

func (v *view) reason(now time.Time) (out WaitError) {
	i, holds, standing := v.named()
	if i < 0 {
		return out
	}
	how := "behind "
	if holds {
		how, out.Ahead.Holder = "held by ", true
	}
	n := v.Watch[i].Node
	out.Ahead.Path, out.Ahead.Sequence = v.q.nodePath(n.Name), n.Sequence
	who := shortName(n)
	if v.on[i] != nil {
		if data, stat := v.on[i].Data(); stat != nil {
			describe(&out.Ahead, slices.Clone(data), stat) // others read it
			out.Ahead.Own = out.Ahead.Session == v.s.ID()
			if v.own != nil { // our node tells the ensemble's clock
				if _, own := v.own.Data(); own != nil {
					now = time.UnixMilli(own.Ctime).Add(now.Sub(v.since))
				}
			}
			age := max(0, now.Sub(time.UnixMilli(stat.Ctime)))
			who = whoIs(n, &out.Ahead) + ", in the queue for " + Short(age)
		}
	}
	out.Reason = v.leases() + how + who
	switch more := v.Beyond + standing - 1; {
	case v.Beyond > 0:
		out.Reason = fmt.Sprintf("%s; up to %d more ahead", out.Reason, more)
	case more > 0:
		out.Reason = fmt.Sprintf("%s; %d more ahead", out.Reason, more)
	}
	return out
}

func (v *view) leases() string {
	switch {
	case v.limit < 2:
		return ""
	case v.Beyond > 0 || v.Head < len(v.Watch):
		return fmt.Sprintf("limit of %d leases; ", v.limit)
	}
	taken := 0
	for i := range v.on {
		if v.stands(i) {
			if addWeights(taken, v.Watch[i].Weight) > v.limit {
				break
			}
			taken += v.Watch[i].Weight
		}
	}
	return fmt.Sprintf("%d of %d leases taken; ", taken, v.limit)
}

func shortName(n Node) string { return fmt.Sprintf("%s%010d", n.Prefix, n.Sequence) }

func whoIs(n Node, c *Contender) string {
	odd := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:@+", r)
	}
	name := shortName(n)
	switch {
	case c.Own:
		name = "this process"
	case strings.ContainsFunc(c.ID, odd):
		name = strconv.Quote(c.ID)
	case c.ID != "":
		name = c.ID
	}
	if c.Label != "" {
		name += ", " + strconv.Quote(c.Label)
	}
	if string(c.Data) == RevokeMessage {
		name += ", which was asked to release it"
	}
	if c.Session == 0 {
		name += ", whose node has no session and stays until it is deleted"
	}
	return name
}

// Short formats a duration in whole seconds, or below one in milliseconds.
func Short(d time.Duration) string {
	if d >= time.Second {
		return d.Truncate(time.Second).String()
	}
	return d.Truncate(time.Millisecond).String()
}
