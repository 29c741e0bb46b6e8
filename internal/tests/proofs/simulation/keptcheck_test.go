package simulation

import (
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/queue"
)

// keptPlaces checks how places are kept. In the calm, a place may not be used again, or handed over more often than it may be,
// once another contender has waited behind it for longer than a client needs to hear of that.
type keptPlaces struct {
	w *world

	mu     sync.Mutex
	nodes  map[string]*keptPlace // by the path of a node that was granted
	behind map[string]time.Time  // since when others wait behind a node that nothing is ahead of
	vain   map[string]time.Time  // since when no call could use a node that was never used
}

type keptPlace struct {
	of      *member
	mode    string // of the first call that it was granted to
	reads   bool
	first   time.Time // when it was granted
	session int64
	holders int
	ended   time.Time // the last hold
	next    time.Time // when a hold began while another one was not known to have ended; zero if none did
	passed  int       // hand-overs while another one waited
}

func newKeptPlaces(w *world) *keptPlaces {
	return &keptPlaces{w: w, nodes: make(map[string]*keptPlace), behind: make(map[string]time.Time), vain: make(map[string]time.Time)}
}

func (ks *keptPlaces) off() bool { return ks.w.keeps == nil }

// granted notes a grant, and says what is wrong with it. all are the contenders on the server.
func (ks *keptPlaces) granted(k *worker, mode, node string, n queue.Node, all []contender) (wrong []string) {
	if ks.off() {
		return nil
	}
	now := time.Now()
	live, since := k.m.sessionSince()
	by := blocked(contender{path: node, dir: path.Dir(node), mode: modeOf(n), seq: n.Sequence}, all)
	ks.mu.Lock()
	defer ks.mu.Unlock()
	p := ks.nodes[node]
	if p == nil {
		ks.nodes[node] = &keptPlace{of: k.m, mode: mode, first: now, session: live, reads: modeOf(n) == "read", holders: 1}
		return nil
	}
	defer func() { p.holders++ }()
	released := !p.ended.IsZero() && p.ended.Equal(now)
	say := func(format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("%s has %s: %s", k.name, node, fmt.Sprintf(format, args...)))
	}
	came, waits := ks.behind[node]
	waits = waits && by != "" && now.Sub(came) > prompt
	d := ks.w.keeps[p.mode]
	if live != p.session && since.Before(now) {
		say("it is used after its session has ended")
	}
	switch {
	case p.reads && p.first.Equal(now): // all that wait are granted together
	case p.reads && p.holders > 0 && waits:
		say("a reader joins, and %s waits since %v", by, now.Sub(came))
	case p.reads && p.holders > 0:
	case p.holders > 0, released && !p.reads: // handed over
		if p.holders > 0 {
			p.next = now // the hook for the end of the last hold is called after the next hold has begun, and in no time
		}
		if p.passed++; !waits {
			p.passed = 0
		}
		if p.passed > ks.w.kind.usages[p.mode].most {
			say("it is handed over for the %dth time, and %s waits since %v", p.passed, by, now.Sub(came))
		}
	case waits:
		say("it is used again, and %s waits since %v", by, now.Sub(came))
	case now.Sub(p.ended) > d:
		say("it is used again %v after its release, but kept for %v", now.Sub(p.ended), d)
	}
	return wrong
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

// watchOver looks at the places now and then, in the calm, until stop is closed.
func (ks *keptPlaces) watchOver(stop <-chan struct{}) {
	ks.w.every("kept", stop, func() {
		if since := ks.w.calmSince(); time.Now().Before(since) {
			return
		}
		all := ks.w.contenders("")
		for _, text := range append(ks.look(all), ks.unused(all)...) {
			ks.w.checks.fail("%s", text)
		}
	})
}

// look says which nodes are wrong: those that have stayed for longer than they are kept, and those that
// nobody uses and that others wait for.
func (ks *keptPlaces) look(all []contender) (wrong []string) {
	now, calm := time.Now(), ks.w.calmSince()
	ks.mu.Lock()
	defer ks.mu.Unlock()
	say := func(c contender, format string, args ...any) {
		wrong = append(wrong, c.path+fmt.Sprintf(format, args...))
	}
	behind := make(map[string]time.Time)
	for _, c := range all {
		by, idle := blocked(c, all), now
		if by != "" {
			behind[c.path] = now
			if was, ok := ks.behind[c.path]; ok {
				behind[c.path] = was
			}
			idle = behind[c.path]
		}
		p := ks.nodes[c.path]
		if p != nil && p.holders > 0 {
			continue
		}
		if p != nil {
			idle = later(idle, p.ended)
			until := later(calm, p.ended.Add(ks.w.keeps[p.mode]))
			if now.Sub(until) > prompt {
				say(c, " stays for %v after its last hold, and %v longer than it is kept", now.Sub(p.ended), now.Sub(until))
			}
		}
		if d := now.Sub(idle); d > prompt {
			say(c, " is not used for %v, and in the way of %s", d, by)
		}
	}
	ks.behind = behind
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
		if ks.nodes[c.path] != nil || ks.w.calls(c.session) {
			continue
		}
		vain[c.path] = now
		if was, ok := ks.vain[c.path]; ok {
			vain[c.path] = was
		}
		if d := now.Sub(vain[c.path]); d > prompt {
			wrong = append(wrong, fmt.Sprintf("%s has stayed for %v, and nobody has ever used it", c.path, d))
		}
	}
	ks.vain = vain
	return wrong
}

// calls reports whether a session is none of the managers', or one of which a worker is in a call.
func (w *world) calls(session string) bool {
	for _, m := range w.members {
		if sessionName(m.sessionNow()) == session {
			return slices.ContainsFunc(w.workers, func(k *worker) bool { return k.m == m && k.doing() != "" })
		}
	}
	return true
}

// givesWay reports whether a node is only kept, so that a try gets the lock in spite of it.
func (ks *keptPlaces) givesWay(c contender) bool {
	if since := ks.w.calmSince(); ks.off() || since.IsZero() || time.Now().Before(since) {
		return false
	}
	n, ok := queue.ParseNode(path.Base(c.path))
	ks.mu.Lock()
	p := ks.nodes[c.path]
	unused := ok && n.MayKeep && p != nil && p.holders == 0
	ks.mu.Unlock()
	if !unused {
		return false
	}
	live, _ := p.of.sessionSince()
	return p.session == live
}

// blocked returns a contender that a node is in the way of, if the node itself could go.
func blocked(c contender, all []contender) (by string) {
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
