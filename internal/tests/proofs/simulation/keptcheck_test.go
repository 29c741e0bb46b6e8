package simulation

import (
	"encoding/binary"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/queue"
)

// keptPlaces checks how places are kept, from what the servers tell the clients. A place may be used
// again only while a watch on the children is pending. The watch was set on this connection by a
// listing that shows the node and no contender that has to wait for it. So a place is spoilt by a
// listing that shows such a contender, by an event, and by the end of the connection, and as long as no
// listing has set a watch. A listing without a watch does no harm to an earlier watch: the search for the
// node of an earlier create, whose reply was lost, lists too. The watch counts for a session timeout, since a server
// that takes the right to read away drops the event.
type keptPlaces struct {
	w *world

	mu     sync.Mutex
	owners map[string]*member    // of the ids in the names of nodes
	nodes  map[string]*keptPlace // by the path of the node
	idle   map[string]time.Time  // since when a node is in the way and unused
	vain   map[string]time.Time  // since when no call could use a node that was never used
	said   map[string]bool       // of which nodes something was said
	tokens map[string][]token    // by directory
}

type keptPlace struct {
	of     *member
	link   *link     // of the listing that counts
	listed time.Time // when that was answered
	spoilt time.Time // zero if it is not
	why    string

	mode    string // of the first call that it was granted to; "" until then
	reads   bool
	first   time.Time // when it was granted
	session int64
	holders int
	ended   time.Time // the last hold
	next    time.Time // when a hold began while another one was not known to have ended; zero if none did
	passed  int       // hand-overs since it was spoilt
	uses    int       // after it had been kept
}

// token is a fencing token that a holder has asked for.
type token struct {
	order int // of the grant
	value int64
	node  string
	mode  string
}

// beside reports whether two holders can hold together, so that the one with the lower token can come later.
func (t token) beside(o token) bool { return t.mode == "read" && o.mode == "read" || isCount(t.mode) }

func newKeptPlaces(w *world) *keptPlaces {
	return &keptPlaces{w: w, owners: make(map[string]*member), nodes: make(map[string]*keptPlace),
		idle: make(map[string]time.Time), vain: make(map[string]time.Time), said: make(map[string]bool), tokens: make(map[string][]token)}
}

func (ks *keptPlaces) off() bool { return ks.w.keeps == nil }

// drew notes for which manager an id was drawn.
func (ks *keptPlaces) drew(id string, m *member) {
	if ks.off() {
		return
	}
	ks.mu.Lock()
	defer ks.mu.Unlock()
	ks.owners[id] = m
}

func (p *keptPlace) spoil(format string, args ...any) {
	if p.spoilt.IsZero() {
		p.spoilt, p.why = time.Now(), fmt.Sprintf(format, args...)
	}
}

// lists notes that a client gets a listing. One that comes after the client has closed the connection reaches
// nobody. One that was asked for by a session before this one sets no watch of this one.
func (ks *keptPlaces) lists(l *link, req request, frame []byte) {
	if ks.off() || l.left.Load() {
		return
	}
	var all []queue.Node
	for _, name := range namesIn(frame) {
		if n, ok := queue.ParseNode(name); ok {
			all = append(all, n)
		}
	}
	ks.mu.Lock()
	defer ks.mu.Unlock()
	for _, n := range all {
		if m := ks.owners[n.ID]; m != nil && m.end == l.e && m.sessionNow() == l.session {
			ks.listedLocked(l, m, path.Join(req.path, n.Name), n, all, req.watch)
		}
	}
}

func (ks *keptPlaces) listedLocked(l *link, m *member, node string, n queue.Node, all []queue.Node, watch bool) {
	p := ks.nodes[node]
	if p == nil {
		p = &keptPlace{of: m}
		ks.nodes[node] = p
	}
	behind := ""
	for _, o := range all {
		if o.Sequence > n.Sequence && weight(modeOf(n), modeOf(o)) > 0 {
			behind = o.Name
		}
	}
	switch {
	case behind != "":
		p.spoil("%s is listed behind it", behind)
	case watch:
		p.link, p.listed, p.spoilt, p.why = l, time.Now(), time.Time{}, ""
	case p.link == nil:
		p.spoil("it is listed without a watch")
	}
}

// namesIn returns the names in an answer to getChildren2.
func namesIn(frame []byte) (out []string) {
	const count = 20
	rest := frame[count+4:]
	for range binary.BigEndian.Uint32(frame[count:]) {
		size := 4 + binary.BigEndian.Uint32(rest)
		out = append(out, string(rest[4:size]))
		rest = rest[size:]
	}
	return out
}

// changed notes that a client is told that the children of a directory have changed.
func (ks *keptPlaces) changed(l *link, dir string) {
	if ks.off() {
		return
	}
	ks.mu.Lock()
	defer ks.mu.Unlock()
	for node, p := range ks.nodes {
		if p.link == l && path.Dir(node) == dir {
			p.spoil("the children have changed")
		}
	}
}

// cut notes that a connection has ended.
func (ks *keptPlaces) cut(l *link) {
	if ks.off() {
		return
	}
	ks.mu.Lock()
	defer ks.mu.Unlock()
	for _, p := range ks.nodes {
		if p.link == l {
			p.spoil("the connection has ended")
		}
	}
}

// granted notes a grant, and says what is wrong with it.
func (ks *keptPlaces) granted(k *worker, mode, node string, n queue.Node) (wrong []string) {
	if ks.off() {
		return nil
	}
	now := time.Now()
	live, since := k.m.sessionSince()
	ks.mu.Lock()
	defer ks.mu.Unlock()
	p := ks.nodes[node]
	if p == nil { // a writer has become a reader, and nothing was listed
		p = &keptPlace{of: k.m}
		p.spoil("it was never listed")
		ks.nodes[node] = p
	}
	defer func() { p.holders++ }()
	released := !p.ended.IsZero() && p.ended.Equal(now)
	if p.mode == "" {
		p.mode, p.first, p.session, p.reads = mode, now, live, modeOf(n) == "read"
		return nil
	}
	say := func(format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("%s has %s: %s", k.name, node, fmt.Sprintf(format, args...)))
	}
	if until := p.listed.Add(k.m.timeout); p.spoilt.IsZero() && until.Before(now) {
		p.spoilt, p.why = until, "the listing is a session timeout old"
	}
	spoilt := !p.spoilt.IsZero() && p.spoilt.Before(now)
	age := now.Sub(p.spoilt)
	d := ks.w.keeps[p.mode]
	if live != p.session && since.Before(now) {
		say("it is used after its session has ended")
	}
	switch {
	case p.reads && p.first.Equal(now): // all that wait are granted together
	case p.reads && p.holders > 0 && spoilt:
		say("a reader joins %v after: %s", age, p.why)
	case p.reads && p.holders > 0:
	case p.holders > 0, released && !p.reads: // handed over
		if p.holders > 0 {
			p.next = now // the hook for the end of the last hold is called after the next hold has begun, and in no time
		}
		if spoilt {
			p.passed++
		}
		if p.passed > ks.w.kind.usages[p.mode].most {
			say("it is handed over for the %dth time after: %s", p.passed, p.why)
		}
	case spoilt:
		say("it is used again %v after: %s", age, p.why)
	case now.Sub(p.ended) > d:
		say("it is used again %v after its release, but kept for %v", now.Sub(p.ended), d)
	}
	if p.holders == 0 && !released {
		p.uses++
	}
	return wrong
}

// keepsUntil returns until when a place that nobody holds may be kept.
func (w *world) keepsUntil(p *keptPlace) time.Time {
	until := p.ended.Add(w.keeps[p.mode])
	if counts := p.listed.Add(p.of.timeout); counts.Before(until) {
		until = counts
	}
	if until.Before(p.ended) {
		return p.ended
	}
	return until
}

// endedHold notes the end of a worker's hold, and says what is wrong with it.
func (ks *keptPlaces) endedHold(k *worker, node string) (wrong []string) {
	if ks.off() {
		return nil
	}
	now := time.Now()
	ks.mu.Lock()
	defer ks.mu.Unlock()
	p := ks.nodes[node]
	if p == nil {
		return nil
	}
	if !p.next.IsZero() && !p.next.Equal(now) {
		wrong = append(wrong, fmt.Sprintf("%s: it was used again while it was held, %v before this end", node, now.Sub(p.next)))
	}
	p.holders--
	p.ended, p.next = now, time.Time{}
	return wrong
}

// reused returns how often places were used again after they had been kept.
func (ks *keptPlaces) reused() (n int) {
	ks.mu.Lock()
	defer ks.mu.Unlock()
	for _, p := range ks.nodes {
		n += p.uses
	}
	return n
}

// watchOver looks at the places now and then, in the calm, until stop is closed.
func (ks *keptPlaces) watchOver(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		ks.w.sleepAs(faultSlot, 40*time.Millisecond, "kept")
		if since := ks.w.calmSince(); since.IsZero() || time.Now().Before(since) {
			continue
		}
		all := ks.w.contenders("")
		for _, text := range append(ks.look(all), ks.unused(all)...) {
			ks.w.checks.fail("%s", text)
		}
		ks.w.heldInVain()
	}
}

// look says which nodes are wrong: those that have stayed for longer than they are kept, those that
// nobody uses and that others wait for, and those beyond half of what a session may have.
func (ks *keptPlaces) look(all []contender) (wrong []string) {
	now, calm := time.Now(), ks.w.calmSince()
	ks.mu.Lock()
	defer ks.mu.Unlock()
	say := func(c contender, format string, args ...any) {
		if !ks.said[c.path] {
			ks.said[c.path] = true
			wrong = append(wrong, c.path+fmt.Sprintf(format, args...))
		}
	}
	idle := make(map[string]time.Time)
	keeps := make(map[*member]int)
	for _, c := range all {
		p := ks.nodes[c.path]
		if p != nil && p.holders > 0 {
			continue
		}
		if p != nil && p.mode != "" && p.of.maxNodes > 0 && now.Sub(p.ended) > prompt {
			if keeps[p.of]++; keeps[p.of] > p.of.maxNodes/2 {
				say(c, " is kept, and %s keeps %d of the %d nodes that it may have", p.of.name, keeps[p.of], p.of.maxNodes)
			}
		}
		if p != nil && p.mode != "" {
			until := ks.w.keepsUntil(p)
			if until.Before(calm) {
				until = calm
			}
			if now.Sub(until) > prompt {
				say(c, " stays for %v after its last hold, and %v longer than it is kept", now.Sub(p.ended), now.Sub(until))
			}
		}
		if by := ks.w.blocked(c, all); by != "" {
			idle[c.path] = now
			if was, ok := ks.idle[c.path]; ok {
				idle[c.path] = was
			}
			if d := now.Sub(idle[c.path]); d > prompt {
				say(c, " is not used for %v, and in the way of %s", d, by)
			}
		}
	}
	ks.idle = idle
	return wrong
}

// unused says which nodes are kept although nobody has ever used them: a caller that did not get its locks keeps nothing.
// As long as a worker of the manager is in a call, the node may be for that.
func (ks *keptPlaces) unused(all []contender) (wrong []string) {
	now := time.Now()
	ks.mu.Lock()
	defer ks.mu.Unlock()
	vain := make(map[string]time.Time)
	for _, c := range all {
		p := ks.nodes[c.path]
		if p == nil || p.mode != "" || ks.w.calls(p.of) {
			continue
		}
		vain[c.path] = now
		if was, ok := ks.vain[c.path]; ok {
			vain[c.path] = was
		}
		if d := now.Sub(vain[c.path]); d > prompt && !ks.said[c.path] {
			ks.said[c.path] = true
			wrong = append(wrong, fmt.Sprintf("%s has stayed for %v, and nobody has ever used it", c.path, d))
		}
	}
	ks.vain = vain
	return wrong
}

// calls reports whether a worker of a manager is in a call.
func (w *world) calls(m *member) bool {
	return slices.ContainsFunc(w.workers, func(k *worker) bool { return k.m == m && k.doing() != "" })
}

// givesWay reports whether a node is only kept, so that a try gets the lock in spite of it.
func (ks *keptPlaces) givesWay(c contender) bool {
	if since := ks.w.calmSince(); ks.off() || since.IsZero() || time.Now().Before(since) {
		return false
	}
	n, ok := queue.ParseNode(path.Base(c.path))
	ks.mu.Lock()
	p := ks.nodes[c.path]
	unused := ok && n.MayKeep && p != nil && p.mode != "" && p.holders == 0
	ks.mu.Unlock()
	if !unused {
		return false
	}
	live, _ := p.of.sessionSince()
	return p.session == live
}

// blocked returns a contender that a node is in the way of, if the node itself could go.
func (w *world) blocked(c contender, all []contender) (by string) {
	for _, o := range all {
		switch {
		case o.dir != c.dir || o.seq == c.seq || o.seq < 0 || c.seq < 0:
		case o.seq < c.seq && weight(o.mode, c.mode) > 0:
			return ""
		case o.seq > c.seq && weight(c.mode, o.mode) > 0:
			by = o.path
		}
	}
	return by
}

// heldInVain looks for locks that report held although no worker holds them.
func (w *world) heldInVain() {
	for _, m := range w.members {
		m.mu.Lock()
		locks := m.locks
		for p, made := range locks {
			for mode, l := range made.made {
				if held, ok := l.(locker); ok && held.Held() && !w.checks.isHolding(m, p, mode) {
					defer w.checks.fail("%s: %s of %s reports held, but nobody holds it", m.name, mode, p)
				}
			}
		}
		m.mu.Unlock()
	}
}

// isHolding reports whether a worker of a manager holds a lock, is about to give it back, or is in a call that a hook holds
// up after the grant.
func (cs *checks) isHolding(m *member, p, mode string) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, k := range cs.w.workers {
		if c := k.current; c != nil && k.m == m && c.path == p && c.mode == mode && !c.finished {
			return true
		}
	}
	for _, h := range cs.holdings {
		if h.c.m == m && h.c.path == p && h.c.mode == mode {
			return true
		}
	}
	return false
}

// askToken asks for the token of a lease, and compares it with those of other grants. A later grant that excludes
// the earlier has a higher one, or the same if it has the same node. A node that an operator took has no order: a
// process that has not heard of that hands its place over while others hold with higher tokens.
func (k *worker) askToken(c *call, l *queue.Lease) {
	if k.world.keeps == nil || k.rng.IntN(3) > 0 {
		return
	}
	ctx, cancel := within(time.Second)
	defer cancel()
	value, err := l.Token(ctx)
	if err != nil {
		return
	}
	ks, node := k.world.checks.kept, l.Path()
	dir := path.Dir(node)
	n, _ := queue.ParseNode(path.Base(node))
	mine := token{k.world.checks.orderOf(c, dir), value, node, modeOf(n)}
	taken := k.world.checks.taken(node)
	ks.mu.Lock()
	var wrong []token
	for _, o := range ks.tokens[dir] {
		inOrder := (o.order < mine.order) == (o.value < value) || mine.beside(o) || taken
		if (o.node == node) != (o.value == value) || o.node != node && !inOrder {
			wrong = append(wrong, o)
		}
	}
	if !taken {
		ks.tokens[dir] = append(ks.tokens[dir], mine)
	}
	ks.mu.Unlock()
	for _, o := range wrong {
		k.world.checks.fail("%s: the token of %s is %d, but that of %s is %d", k.name, node, value, o.node, o.value)
	}
}

// taken reports whether an operator took a node.
func (cs *checks) taken(node string) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for at := range cs.gone {
		if at.node == node {
			return true
		}
	}
	return false
}

func (cs *checks) orderOf(c *call, dir string) int {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return c.grants[dir].order
}
