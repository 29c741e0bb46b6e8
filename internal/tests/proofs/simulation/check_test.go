package simulation

import (
	"context"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// checks watches over a run. It has to look for conflicting leases that both report held only when
// a lease is granted. A lease that has ended never begins again, so two leases that overlap do so
// from the grant of the later one on.
type checks struct {
	w *world

	mu       sync.Mutex
	failures []string
	grants   int
	holdings []*holding                // given to a worker and not given back
	entries  map[string][]*acquisition // every attempt, by path of the lock, in the order they began
	gone     map[place]deletion        // contenders' nodes that an operator took
	ended    map[position]bool         // in which a hold has ended
	granted  map[place]int             // how often each node was
	order    int                       // of the grants: counts them
	kept     *keptPlaces
}

// acquisition is one attempt to get a lock: one node.
type acquisition struct {
	c          *call
	start, end time.Time // end is zero until it has left or the hold has ended
}

// grantInfo is a grant in one directory.
type grantInfo struct {
	order int // among all grants
	limit int // the highest under which it can have been let in; 0: not of a semaphore that is resized
}

// place is a contender's node. Where all have the same name, sessions tell them apart.
type place struct{ node, session string }

// deletion is a node that an operator has deleted.
type deletion struct {
	at      time.Time
	waiting bool // others were ahead of it; then it never holds
}

// holding is a lock in the hands of a worker.
type holding struct {
	checks *checks
	c      *call
	nodes  []place
	report func() bool
}

func newChecks(w *world) *checks {
	return &checks{
		w: w, entries: make(map[string][]*acquisition), gone: make(map[place]deletion), ended: make(map[position]bool),
		granted: make(map[place]int), kept: newKeptPlaces(w),
	}
}

func (cs *checks) fail(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	cs.w.trace.add("FAIL", "%s", text)
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if len(cs.failures) == mostFailures {
		return // the last of them go on and on
	}
	cs.failures = append(cs.failures, fmt.Sprintf("at %.9f: %s",
		time.Since(cs.w.trace.start).Seconds(), cs.w.trace.readable(text)))
}

const mostFailures = 10

func (cs *checks) failed() []string {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return slices.Clone(cs.failures)
}

// attempt is called with each uuid that is drawn on behalf of a worker's call.
func (cs *checks) attempt(k *worker, call int) {
	if k.isProbe() {
		return
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if k.current.number != call {
		return // the call has ended, and another one's node is made in its name
	}
	k.current.attempts++
	if !k.current.perCall { // or else the node may be for others
		cs.enterLocked(k.current)
	}
}

// enterLocked notes that a call begins to be in the way of others, or does so anew.
func (cs *checks) enterLocked(c *call) {
	c.leaveLocked()
	c.entry = &acquisition{c: c, start: time.Now()}
	cs.entries[c.path] = append(cs.entries[c.path], c.entry)
}

// hold is the trace hook for grants. A lock of several parts grants each of them.
func (cs *checks) hold(ctx context.Context, info session.HoldInfo) func(error) {
	k := ctx.Value(workerKey{}).(*worker)
	if k.isProbe() {
		return func(error) {}
	}
	k.log("GRANT %s", info.Node)
	if !cs.isCurrent(ctx, k) {
		return func(cause error) { k.log("END %s, which nobody has: %s", info.Node, kindOfError(cause)) }
	}
	n, _ := queue.ParseNode(path.Base(info.Node))
	at := place{info.Node, sessionName(k.m.sessionNow())}
	all := cs.w.contenders(info.Path)
	wrong := append(cs.kept.granted(k, cs.modeOf(k), info.Node, n, all), cs.w.crowded(k.m)...)

	cs.mu.Lock()
	cs.grants++
	c, e := k.current, k.current.entry
	e.end = time.Time{} // of an earlier grant, when the call could not have the lock object
	c.nodes = append(c.nodes, at)
	cs.order++
	grant := grantInfo{cs.order, cs.w.limits.under(k, info.Path, c.began)}
	c.grants[info.Path] = grant
	lost, deleted := cs.gone[at]
	if cs.granted[at]++; cs.granted[at] > 1+cs.w.kind.handovers && cs.w.keeps == nil {
		wrong = append(wrong, fmt.Sprintf("%s is granted for the %dth time", info.Node, cs.granted[at]))
	}
	switch {
	case deleted && lost.waiting:
		wrong = append(wrong, fmt.Sprintf("%s is granted %s, which was deleted while it waited", k.name, info.Node))
	case deleted:
	default:
		wrong = append(wrong, cs.outOfTurn(k, n, at, all, grant.limit)...)
	}
	cs.mu.Unlock()
	for _, text := range wrong {
		cs.fail("%s", text)
	}
	if !deleted {
		cs.conflicts(info.Path, &newcomer{c, at, inside{modeOf(n), k, grant}})
	}
	return func(cause error) {
		k.log("END %s: %s", info.Node, kindOfError(cause))
		for _, text := range cs.kept.endedHold(k, info.Node) {
			cs.fail("%s", text)
		}
		cs.mu.Lock()
		defer cs.mu.Unlock()
		cs.ended[position{at.session, info.Path, n.Sequence}] = true
		c.ended++
		if !c.several() { // or else it may begin anew
			e.end = time.Now()
		}
	}
}

// isCurrent reports whether a worker is still in the call that a context was made for. It is not
// if its function has panicked meanwhile.
func (cs *checks) isCurrent(ctx context.Context, k *worker) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	s, ok := ctx.Value(seriesKey{}).(*series)
	return ok && k.current.number == s.call && !k.current.dropped
}

// modeOf returns the mode of a worker's call.
func (cs *checks) modeOf(k *worker) string {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return k.current.mode
}

// newcomer is a call that is just being granted something.
type newcomer struct {
	c    *call
	node place
	inside
}

// outOfTurn compares a grant with the nodes on the server, and says what is wrong with it.
func (cs *checks) outOfTurn(k *worker, n queue.Node, at place, all []contender, limit int) (wrong []string) {
	if n.Sequence < 0 {
		wrong = append(wrong, fmt.Sprintf("%s is granted %s, past the end of the counter", k.name, at.node))
	}
	ahead, who := 0, []string(nil)
	type turn struct {
		seq     int32
		session string
	}
	counted := make(map[turn]bool) // one that leaves another node in its place is one contender
	for _, c := range all {
		if f := cs.foreignLocked(c.path); f != nil {
			if w := cs.besideForeignLocked(f, c, k, n, at); w > 0 {
				ahead, who = ahead+w, append(who, c.path)
			}
			continue
		}
		it := turn{c.seq, c.session}
		// A create that got a negative number is undone: it is never granted, and in nobody's way.
		if w := weight(c.mode, modeOf(n)); c.seq >= 0 && c.seq < n.Sequence && w > 0 && !counted[it] && !cs.halfGoneLocked(c) {
			counted[it] = true
			ahead += w
			who = append(who, c.path)
		}
		if c.path == at.node && at.session != "" && c.session != at.session {
			wrong = append(wrong, fmt.Sprintf("%s is granted %s, which is of another session", k.name, at.node))
		}
	}
	if ahead > slackUnder(modeOf(n), limit) {
		wrong = append(wrong, fmt.Sprintf("%s is granted %s out of its turn: ahead are %v", k.name, at.node, who))
	}
	return wrong
}

// position is what a writer has in common with the reader that it becomes.
type position struct {
	session, dir string
	seq          int32
}

// halfGoneLocked reports whether the node beside which a contender's stands is gone: that of a writer which was about to
// become a reader. An operator took it, or its lease was released meanwhile. Then the contender's node is on its way out of
// the queue. If that is granted all the same, leases that are granted meanwhile conflict with it.
func (cs *checks) halfGoneLocked(c contender) bool {
	if cs.granted[place{c.path, c.session}] == 0 && cs.ended[position{c.session, c.dir, c.seq}] {
		return true
	}
	for other := range cs.gone {
		n, _ := queue.ParseNode(path.Base(other.node))
		if other.session == c.session && path.Dir(other.node) == c.dir && n.Sequence == c.seq {
			return true
		}
	}
	return false
}

// sessionName is a session's id as the server prints it; "" for none.
func sessionName(id int64) string {
	if id == 0 {
		return ""
	}
	return fmt.Sprintf("%#x", uint64(id))
}

// prompt is how soon, in the calm, a contender gets a lock that has become free: some round trips,
// and far less than the session timeout after which it would look again by itself.
const prompt = 400 * time.Millisecond

// watchOver looks for contenders that are not let in although they may be, now and then in the calm, until stop is closed.
func (cs *checks) watchOver(stop <-chan struct{}) {
	first := make(map[string]time.Time) // since when each of them has been
	cs.w.every("turns", stop, func() {
		now, was := time.Now(), first
		if now.Before(cs.w.calmSince()) {
			return
		}
		first = make(map[string]time.Time)
		all := cs.w.contenders("")
		for _, c := range all {
			if !cs.isFirst(c, all) {
				continue
			}
			first[c.path] = now
			if at, ok := was[c.path]; ok {
				first[c.path] = at
			}
			if late := now.Sub(first[c.path]); late > prompt {
				cs.fail("%s waits %v too long", c.path, late)
			}
		}
	})
}

// isFirst reports whether a contender of ours that was never let in may be.
func (cs *checks) isFirst(c contender, all []contender) bool {
	low := cs.w.limits.lowest(c.dir, time.Now())
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c.seq < 0 || cs.granted[place{c.path, c.session}] > 0 || cs.foreignLocked(c.path) != nil {
		return false
	}
	ahead := 0
	for _, o := range all {
		if o.dir == c.dir && o.seq < c.seq {
			ahead += weight(o.mode, c.mode)
		}
	}
	return ahead <= slackUnder(c.mode, low)
}
