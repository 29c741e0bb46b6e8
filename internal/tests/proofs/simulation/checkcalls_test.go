package simulation

import (
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// begin notes a call.
func (cs *checks) begin(c *call) {
	c.began = time.Now()
	all := 0
	for _, p := range cs.w.kind.partsOf(c) {
		for _, o := range cs.w.contenders(p.dir) {
			if !cs.kept.givesWay(o) {
				all += weight(o.mode, p.mode)
			}
		}
	}
	present := cs.w.busy(c, all)
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c.present = present
	c.number, c.grants = c.calls, make(map[string]grantInfo)
	c.perCall = c.usage().perCall
	c.worker.current = c
	if c.perCall {
		cs.enterLocked(c)
	}
}

// leaveLocked notes that a call is in nobody's way any more.
func (c *call) leaveLocked() {
	if c.entry != nil && c.entry.end.IsZero() {
		c.entry.end = time.Now()
	}
}

// drop notes that the function of a call has panicked.
func (cs *checks) drop(c *call) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c.dropped, c.finished = true, true
	c.leaveLocked()
}

// finish checks the result of a call.
func (cs *checks) finish(c *call, ok bool, err error) {
	now := time.Now()
	_, since := c.m.sessionSince()
	cs.mu.Lock()
	c.finished = true
	if !ok {
		c.leaveLocked()
	}
	ghost := c.attempts > 0 && since.After(c.began) // its node of a session that was lost stands until the servers close that
	somebody := c.present || c.attempts > 1 || ghost || cs.othersLocked(c)
	cs.mu.Unlock()
	closed := errors.Is(err, session.ErrClosed)
	switch {
	case err == nil && (ok || somebody):
	case err == nil:
		cs.fail("%s: TryLock is false, and nobody was in the way", c.name)
	case c.ctx.Err() != nil && errors.Is(err, c.ctx.Err()):
	case closed && c.m.leaves(c.mgr):
	case cs.expected(c, err):
	case c.world.kind.revocable && errors.Is(err, queue.ErrRevoked): // a Do that was asked for the lock before the grant
	default:
		cs.fail("%s: a call fails: %v", c.name, err)
	}
	end := c.deadline
	if c.began.After(end) {
		end = c.began // it was cancelled before
	}
	if !c.deadline.IsZero() && now.After(end.Add(time.Millisecond)) {
		cs.fail("%s: a call returns %v after it was cancelled", c.name, now.Sub(end))
	}
}

// shortly returns how long before a moment something may have ended that still has an effect then: a contender that has
// left is in the way of a call, or a server is behind.
func (w *world) shortly(at time.Time) time.Duration {
	if since := w.calmSince(); !since.IsZero() && at.After(since) {
		return 100 * time.Millisecond
	}
	return 15 * time.Second
}

// othersLocked reports whether any other attempt was at the lock during the call. An
// attempt that was cancelled shortly before may still make its node, for a moment, during the call.
func (cs *checks) othersLocked(c *call) bool {
	weight := 0
	shortly := cs.w.shortly(c.began)
	for _, o := range cs.entries[c.path] {
		// A call whose hold has ended before it could have the lock object contends again.
		again := o.c.m == c.m && o.c.perCall && !o.c.finished
		if o.c != c && (again || o.end.IsZero() || o.end.After(c.began.Add(-shortly))) {
			weight += cs.w.kind.weightOf(o.c, c)
		}
	}
	for _, p := range cs.w.kind.partsOf(c) {
		if isCount(p.mode) {
			weight += cs.w.limits.taken(p.dir, c.began.Add(-shortly))
		}
	}
	if cs.w.busy(c, weight) {
		return true
	}
	if cs.metLocked(c.path, c.began.Add(-shortly), isAhead, copies) {
		return true
	}
	for _, h := range cs.holdings { // lost, but the lock object is that worker's until it unlocks
		if h.c.path == c.path && h.c.m == c.m && h.c.worker != c.worker {
			return true
		}
	}
	return false
}

// deleted notes that an operator is about to delete contenders' nodes. It is called just before
// that, with the nodes that are there.
func (cs *checks) deleted(going, all []contender) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, mine := range going {
		_, most := cs.w.limits.between(mine.dir, time.Time{})
		d := deletion{at: time.Now()}
		ahead := 0
		for _, c := range all {
			// The nodes below it go at the same time, so none of them stays ahead for long.
			// A foreign node may have come ahead of one that already held.
			if c.dir == mine.dir && c.seq < mine.seq && !slices.Contains(going, c) && cs.foreignLocked(c.path) == nil {
				ahead += weight(c.mode, mine.mode)
			}
		}
		d.waiting = ahead > slackUnder(mine.mode, most)
		cs.gone[place{mine.path, mine.session}] = d
	}
}

// contender is a node on the server.
type contender struct {
	path, dir string
	mode      string
	seq       int32
	session   string
}

// contenders returns the contenders anywhere below a directory, in the order of their names; ""
// means all.
func (w *world) contenders(dir string) []contender {
	text, err := w.server.Word("dump")
	if err != nil {
		return nil
	}
	var out []contender
	session := ""
	for _, l := range strings.Split(text, "\n") {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(l, "0x") {
			session = strings.TrimSuffix(l, ":")
		}
		if !strings.HasPrefix(l, dir+"/") {
			continue
		}
		if n, ok := queue.ParseNode(path.Base(l)); ok {
			out = append(out, contender{l, path.Dir(l), modeOf(n), n.Sequence, session})
		}
	}
	slices.SortFunc(out, func(a, b contender) int { return strings.Compare(a.path, b.path) })
	return out
}
