package hold

import (
	"time"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/place"
)

// A Local with WithLazyRelease keeps its place in the queue after a release, so that the next
// acquisition of this process takes no request. One invariant carries that:
//
//	A kept place is used again only while a watch on the children is pending that was set, on this
//	connection, by a listing that shows our node and no contender that has to wait for it.
//
// So every contender that comes, of whatever library, ends the use: its node is a child. This file
// decides. localkept.go acts.

// maxKeep is the longest time for which a place is kept.
const maxKeep = time.Minute

// CheckLazy returns an error that matches ErrInvalid if no place can be kept for d, the value of
// WithLazyRelease.
func CheckLazy(d time.Duration) error {
	if d <= 0 || d > maxKeep {
		return misuse.Invalidf("WithLazyRelease(%v): want more than 0 and at most %v", d, maxKeep)
	}
	return nil
}

// maxLooks is how often readers set the watch again before somebody of this process comes. So others that come and go
// cost a place that nobody uses no more than that.
const maxLooks = 16

// tenure is a turn of a Local, and what that knows about its place. The Local's mu guards it.
type tenure struct {
	*place.Turn
	of *Local

	// watch is on the children of the directory. The listing that set it showed no contender that has
	// to wait for our node. Without such a watch it is nil, and the place is not kept.
	watch   *core.Watch
	since   time.Time     // when the turn began
	timeout time.Duration // of the session
	fit     bool          // the place may be kept
	last    bool          // a Revoke, or a downgrade: the place is not kept, nor handed over
	setting bool          // a listing is under way that sets the watch again
	looks   int           // the listings that have set it again since somebody of this process came last
	used    bool          // the place was used again after a release, or shared
	until   time.Time     // while the place is kept: when that ends
	leases  int           // those that were granted and not released
}

// newTenure begins a turn with a contender that was granted, and grants its first lease.
func newTenure(l *Local, g *place.Acquisition) *tenure {
	t := &tenure{of: l, since: time.Now(), leases: 1}
	t.Turn = g.Turn(t)
	t.timeout = t.Timeout()
	t.watch, t.fit = g.MayBeKept()
	return t
}

// guard guards the turn, and tells the Local when a further contender comes.
func (t *tenure) guard() {
	t.Guard()
	t.GuardChildren(t.watch)
}

// undisturbed reports whether nobody of another process has come since the listing that set the watch,
// as far as the server has told. A server stops to tell when it takes the right to read the directory
// away, and does not say so. So after a session timeout the watch no longer counts.
func (t *tenure) undisturbed(now time.Time) bool { return t.fresh(now) && t.pending() }

// fresh reports whether the place may be used again if nobody of another process has come.
func (t *tenure) fresh(now time.Time) bool {
	return t.fit && !t.last && now.Sub(t.since) < t.timeout
}

func (t *tenure) pending() bool { return t.watch != nil && t.watch.Event() == core.WatchPending }

// keepFor begins to keep the place for d.
func (t *tenure) keepFor(now time.Time, d time.Duration) { t.until = now.Add(min(d, t.timeout)) }

// usable reports whether a place that is kept may be used again.
func (t *tenure) usable(now time.Time) bool {
	return t.fit && !t.last && t.pending() && now.Before(t.until)
}
