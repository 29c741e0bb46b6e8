package sim

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/zktest"
)

// limits has the limits of the semaphores that workers resize. The library must keep this
// invariant: at no instant are more leases held than the limit that was in force when the last of
// them was granted.
//
// A contender decides by the answer of its server, which may be older than the moment at which it
// arrives, and older than the request if the server is behind. So the last one to be granted must fit
// the limit of that answer, or one that was in force since.
type limits struct {
	w *world

	mu    sync.Mutex
	dirs  map[string]*limit
	views map[*worker]map[string]view
}

// limit is the limit of one directory.
type limit struct {
	initial int
	busy    bool // a Resize is under way
	spans   []span
	changes []change
	told    map[string]view // the last answer, by the name of the client
	heard   []heard         // of each change of the data, when the first client heard of it
}

// heard is when a client was first told of data that a transaction has set.
type heard struct {
	zxid int64
	at   time.Time
}

// span is when a limit may have been in force.
type span struct {
	limit    int
	from, to time.Time // to is zero for one that may be in force now
}

// change is a Resize.
type change struct {
	began, ended time.Time
	lowers, sure bool
}

// view is a limit as a server told it.
type view struct {
	limit         int
	zxid          int64 // of the transaction that set it
	sent, arrived time.Time
}

func newLimits(w *world) *limits {
	l := &limits{w: w, dirs: make(map[string]*limit), views: make(map[*worker]map[string]view)}
	if w.kind.limited == nil {
		return l
	}
	for _, p := range w.plan.paths {
		for dir, n := range w.kind.limited(p) {
			l.dirs[dir] = &limit{initial: n, spans: []span{{limit: n, from: time.Now()}}, told: make(map[string]view)}
		}
	}
	return l
}

// begin notes that a Resize begins; it reports whether none is under way.
func (l *limits) begin(dir string, n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.dirs[dir]
	if d.busy {
		return false
	}
	d.busy = true
	lowers := false
	for _, s := range d.spans {
		lowers = lowers || s.to.IsZero() && s.limit > n
	}
	now := time.Now()
	d.changes = append(d.changes, change{began: now, lowers: lowers})
	d.spans = append(d.spans, span{limit: n, from: now})
	return true
}

// end notes how a Resize has ended. One that has failed may have been carried out, or may still
// be.
func (l *limits) end(dir string, sure bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d, now := l.dirs[dir], time.Now()
	c := &d.changes[len(d.changes)-1]
	c.ended, c.sure, d.busy = now, sure, false
	if !sure {
		return
	}
	for i := range d.spans {
		if s := &d.spans[i]; s.to.IsZero() && s.from.Before(c.began) {
			s.to = now
		}
	}
}

// wasSince reports whether a limit may have been in force since a moment.
func (l *limits) wasSince(from time.Time, dir string, n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.dirs[dir].spans, func(s span) bool {
		return s.limit == n && (s.to.IsZero() || !s.to.Before(from))
	})
}

// forget has an operator take back the limits that Resize has set: such a directory stays.
func (l *limits) forget() {
	for dir := range l.dirs {
		_ = l.w.server.DeleteNode(dir + "/limit") // it may not be there
	}
}

// since returns the lowest and the highest limit that may have been in force since a moment.
func (d *limit) since(from time.Time) (low, high int) {
	for _, s := range d.spans {
		if !s.to.IsZero() && s.to.Before(from) {
			continue
		}
		if low == 0 || s.limit < low {
			low = s.limit
		}
		high = max(high, s.limit)
	}
	return low, high
}

// behind is how much older, at most, the answer of a server may be.
const behind = 30 * time.Second

// answered notes an answer about a directory that a client gets. It reports whether that can be true.
func (l *limits) answered(client, dir string, frame []byte, sent time.Time) (told int, possible bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.dirs[dir]
	const header, modified = 20, 8 // modified is the place of the zxid in a node's stat
	if d == nil || len(frame) < header+4 {
		return 0, true
	}
	size := int(int32(binary.BigEndian.Uint32(frame[header:])))
	zxid := int64(binary.BigEndian.Uint64(frame[header+4+max(size, 0)+modified:]))
	said := struct {
		MaxLeases int `json:"maxLeases"`
	}{}
	if size > 0 {
		_ = json.Unmarshal(frame[header+4:header+4+size], &said) // a directory may have other data, or none
	}
	v := view{said.MaxLeases, zxid, sent, time.Now()}
	d.hear(zxid)
	if v.limit == 0 {
		v.limit = d.initial // that it is about to get
	}
	told = v.limit
	possible = slices.ContainsFunc(d.spans, func(s span) bool {
		return s.limit == told && (s.to.IsZero() || sent.Before(s.to.Add(behind)))
	})
	if last := d.told[client]; last.arrived.Equal(v.arrived) { // it is not known which is whose
		v.limit = max(v.limit, last.limit)
		v.zxid = min(v.zxid, last.zxid)
		if last.sent.Before(v.sent) {
			v.sent = last.sent
		}
	}
	d.told[client] = v
	return told, possible
}

// hear notes that a client is told of data that a transaction has set.
func (d *limit) hear(zxid int64) {
	if !slices.ContainsFunc(d.heard, func(h heard) bool { return h.zxid == zxid }) {
		d.heard = append(d.heard, heard{zxid, time.Now()})
	}
}

// trueUntil returns a moment up to which the data of an answer was the latest, at the latest when it
// was asked for. The server that answers may be behind.
func (d *limit) trueUntil(v view) time.Time {
	until := v.sent
	for _, h := range d.heard {
		if h.zxid > v.zxid && h.at.Before(until) {
			until = h.at
		}
	}
	return until
}

// read notes that a worker has just been given the last answer.
func (l *limits) read(k *worker, dir string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.dirs[dir]
	if d == nil {
		return
	}
	if l.views[k] == nil {
		l.views[k] = make(map[string]view)
	}
	l.views[k][dir] = d.told[k.m.name]
}

// under returns the highest limit under which a worker can be let in now; 0 for a directory whose
// limit is never changed.
func (l *limits) under(k *worker, dir string, began time.Time) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.dirs[dir]
	if d == nil {
		return 0
	}
	v, ok := l.views[k][dir]
	from := began
	if ok && !v.sent.Before(began) {
		from = d.trueUntil(v)
	}
	_, high := d.since(from)
	return max(v.limit, high)
}

// highest returns the highest limit that there ever was; 0 in the same case as under.
func (l *limits) highest(dir string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.dirs[dir]
	if d == nil {
		return 0
	}
	_, high := d.since(time.Time{})
	return high
}

// lowest returns the lowest limit that a call may have met.
func (l *limits) lowest(dir string, began time.Time) (int, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.dirs[dir]
	if d == nil {
		return 0, false
	}
	low, _ := d.since(began.Add(-15 * time.Second)) // a server may have been behind
	return low, true
}

// text says, for messages, which limits there were.
func (l *limits) text(dir string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.dirs[dir]
	if d == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString("; limits:")
	at := func(t time.Time) float64 { return t.Sub(l.w.trace.start).Seconds() }
	for _, s := range d.spans[max(0, len(d.spans)-4):] {
		fmt.Fprintf(&b, " %d from %.3f", s.limit, at(s.from))
		if !s.to.IsZero() {
			fmt.Fprintf(&b, " to %.3f", at(s.to))
		}
	}
	return b.String()
}

// slackUnder is the slack of the kind; of a semaphore whose limit workers change, under that limit.
func (w *world) slackUnder(mode string, limit int) int {
	if limit > 0 && isCount(mode) {
		return limit - atoi(mode)
	}
	return w.kind.slack(mode)
}

// slackSince returns the slack of a waiter, and since when it has had that; false if that is
// unknown because a limit was lowered meanwhile.
func (w *world) slackSince(e *acquisition) (slack int, since time.Time, steady bool) {
	w.limits.mu.Lock()
	defer w.limits.mu.Unlock()
	d := w.limits.dirs[e.c.path]
	if d == nil {
		return w.kind.slack(e.c.mode), time.Time{}, true
	}
	from := e.start.Add(-time.Second)
	for _, c := range d.changes {
		if c.ended.IsZero() || c.ended.After(from) {
			if c.lowers || !c.sure {
				return 0, since, false
			}
			since = c.ended
		}
	}
	low, high := d.since(time.Now())
	return high - atoi(e.c.mode), since, low == high
}

// busy reports whether others of some weight are a reason for a try to fail.
func (w *world) busy(c *call, weight int) bool {
	if low, ok := w.limits.lowest(c.path, c.began); ok && isCount(c.mode) {
		return weight > low-atoi(c.mode)
	}
	return w.kind.busy(weight, c.mode)
}

// tells is called with each answer, before the client has it.
func (l *limits) tells(client string, r request, p packet) {
	if r.op == zktest.OpGetData {
		if n, possible := l.answered(client, r.path, p.frame, p.at); !possible {
			l.w.checks.fail("%s is told that the limit of %s is %d%s", client, r.path, n, l.text(r.path))
		}
	}
}

func isCount(mode string) bool { return mode != "" && mode[0] >= '0' && mode[0] <= '9' }

// A server that is behind answers with data that another client already knows to be replaced.
func TestAnswerOfAServerBehind(t *testing.T) {
	start := time.Now()
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	d := &limit{heard: []heard{{zxid: 10, at: at(1)}, {zxid: 30, at: at(5)}, {zxid: 20, at: at(3)}}}
	for _, c := range []struct {
		name       string
		zxid       int64
		sent, want int
	}{
		{"the latest", 30, 9, 9},
		{"replaced since", 20, 4, 4},
		{"replaced before", 20, 9, 5},
		{"replaced twice before", 10, 9, 3},
	} {
		if got := d.trueUntil(view{zxid: c.zxid, sent: at(c.sent)}); !got.Equal(at(c.want)) {
			t.Errorf("%s: true until %v s, want %d s", c.name, got.Sub(start).Seconds(), c.want)
		}
	}
}
