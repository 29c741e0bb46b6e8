package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// held notes that a worker has got a lock.
func (cs *checks) held(c *call, report func() bool) *holding {
	h := &holding{checks: cs, c: c, report: report}
	cs.mu.Lock()
	h.nodes = c.nodes
	cs.holdings = append(cs.holdings, h)
	cs.mu.Unlock()
	h.checkConflicts()
	return h
}

func (h *holding) isHeld() bool {
	held := h.report()
	h.checkConflicts()
	return held
}

func (h *holding) checkConflicts() {
	for _, p := range h.checks.w.kind.partsOf(h.c) {
		h.checks.conflicts(p.dir, nil)
	}
}

// end is called before a lock is given back.
func (h *holding) end() {
	cs := h.checks
	h.checkConflicts()
	cs.mu.Lock()
	defer cs.mu.Unlock()
	h.over = true
	if h.c.several() {
		h.c.entry.end = time.Now()
	}
	cs.holdings = slices.DeleteFunc(cs.holdings, func(o *holding) bool { return o == h })
}

// anyHolder picks the manager of a holder; nil if there is none.
func (cs *checks) anyHolder(r *rand.Rand) *member {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if len(cs.holdings) == 0 {
		return nil
	}
	return cs.holdings[r.IntN(len(cs.holdings))].c.m
}

// conflicts checks that the holders that report held may hold together, and together with a
// contender that is just being granted the lock, if there is one.
func (cs *checks) conflicts(dir string, granted *newcomer) {
	cs.mu.Lock()
	all := slices.Clone(cs.holdings)
	cs.mu.Unlock()
	var in []inside
	var who []string
	if granted != nil {
		in = append(in, granted.inside)
		who = append(who, granted.who.name+" "+granted.node.node)
	}
	for _, h := range all {
		p, ok := h.in(dir)
		if !ok || granted != nil && h.c == granted.c || !h.report() || cs.excused(h) || cs.revokedEarly(h) {
			continue
		}
		in = append(in, inside{p.mode, h.c.worker, cs.grantOf(h, dir)})
		who = append(who, fmt.Sprint(h.c.name, " ", h.nodes))
	}
	if !cs.w.kind.together(in) && cs.isNew(in) {
		cs.fail("%s is held at once by %s%s", dir, strings.Join(who, " and "), cs.w.limits.text(dir))
	}
}

// revokedEarly reports whether all holds of a holder have ended, before the holder has given its lock back.
// If workers share one lock object, it then reports held because of another worker.
func (cs *checks) revokedEarly(h *holding) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.w.kind.keeps != nil && h.c.ended >= len(h.c.nodes)
}

// isNew reports whether these holders hold together for the first time.
func (cs *checks) isNew(in []inside) bool {
	orders := make([]int, 0, len(in))
	for _, i := range in {
		orders = append(orders, i.grant.order)
	}
	slices.Sort(orders)
	text := fmt.Sprint(orders)
	cs.mu.Lock()
	defer cs.mu.Unlock()
	was := cs.said[text]
	cs.said[text] = true
	return !was
}

// in returns what a holding is in a directory.
func (h *holding) in(dir string) (part, bool) {
	for _, p := range h.checks.w.kind.partsOf(h.c) {
		if p.dir == dir {
			return p, true
		}
	}
	return part{}, false
}

func (cs *checks) grantOf(h *holding, dir string) grantInfo {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return h.c.grants[dir]
}

// excused reports whether a holder may not know yet that its node was deleted.
func (cs *checks) excused(h *holding) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, node := range h.nodes {
		d, ok := cs.gone[node]
		limit := 2*h.c.m.timeout + 5*time.Second
		if !ok || d.waiting {
			continue
		}
		if !cs.w.calmSince().IsZero() && d.at.After(cs.w.calmSince()) {
			limit = prompt
		}
		if time.Since(d.at) <= limit {
			return true
		}
	}
	return false
}
