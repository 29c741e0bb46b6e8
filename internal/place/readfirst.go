package place

import (
	"cmp"
	"errors"
	"path"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/decide"
)

// A try that reads first (Request.ReadFirst) lists the directory before it makes a node. If it would have to wait, it says
// so, and has written nothing. Otherwise it goes on as any try, and only the listing behind its own node decides: what it has
// read grants nothing. So a listing that is out of date can cost a try, and no more.

// peek fails with ErrBusy if one of the attempts reads first and would have to wait. The listings of all of them are sent
// together.
func (all entrants) peek() error {
	if !slices.ContainsFunc(all, entrant.readsFirst) {
		return nil
	}
	return cmp.Or(all.each(entrant.peek)...)
}

func (a entrant) readsFirst() bool {
	return a.r.ReadFirst && a.entry.Try && a.entry.beside == nil && a.entry.renews == nil
}

// peek is asked before there is a node, so survey lists behind a sync.
func (a entrant) peek() error {
	if !a.readsFirst() {
		return nil
	}
	names, err := a.survey(a.ctx)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil // nobody contends
	case err != nil:
		return err
	}
	ahead := decide.WouldWait(a.r.Kind, decide.Newcomer(a.r.Prefix, a.r.Weight), names, a.config)
	if ahead == nil || !a.inUse(ahead) || slices.ContainsFunc(ahead.Last, a.isLeaving) {
		return nil
	}
	return ErrBusy
}

// isLeaving reports whether a node is one of this session whose delete is under way, or about to be sent.
func (a *attempt) isLeaving(b decide.Blocker) bool {
	return a.s.IsLeaving(path.Join(a.q.dir, b.Node.Name))
}
