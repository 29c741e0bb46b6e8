package place

import (
	"slices"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/kinds"
)

// sight is what the watches say.
func (a *attempt) sight(w *wait) decide.Input {
	v := a.view
	seen := make([]decide.Sight, len(v.targets))
	for i, on := range v.watches {
		event, owner := eventOf(on), v.owner(i) // in this order: a contender that was served says so before it leaves
		_, stat := known(on)
		seen[i] = decide.Sight{
			Event: event, Waits: owner == core.OwnerWaits, Served: owner == core.OwnerFirst,
			Moves: v.targets[i].Replaces && !a.policy.Lasts(stat),
		}
	}
	return decide.BySight(w.rest, v.targets, seen, eventOf(a.own), a.reconfigured(), a.slack)
}

// eventOf returns what a watch has told.
func eventOf(w *core.Watch) decide.Event {
	switch w.Event() {
	case core.WatchPending:
		return decide.Stands
	case core.WatchDeleted:
		return decide.Gone
	}
	return decide.Unclear
}

// plain reports whether the attempt counts every contender ahead of it, and goes when all of them are gone.
func (a *attempt) plain() bool {
	further := func(prefix string) bool { // that not every contender knows
		n, ok := kinds.ParseNode(prefix + "0000000000")
		return !ok || n.Prefix != prefix
	}
	return a.policy.Weight == nil && a.policy.Replaces == nil && a.slack == 0 && a.r.Kind.Configuration == nil &&
		a.entry.beside == nil && !a.doubt && !slices.ContainsFunc(a.r.Kind.Prefixes, further)
}

// reconfigured reports whether the configuration has changed since the last listing, as far as the servers have told.
func (a *attempt) reconfigured() bool {
	if a.configW == nil {
		return false
	}
	_, stat := known(a.configW)
	return a.configW.Event() != core.WatchPending || stat != nil && stat.Mzxid != a.config.Changed
}

// free follows when nothing is in the way. It asks the clock, last: listings and events count only while the session is
// certain.
func (a *attempt) free() (decide.Input, error) {
	if a.outdated {
		return decide.Outdated, nil
	}
	if err := a.s.Err(); err != nil {
		return decide.Quit, err
	}
	if a.own != nil && a.plain() {
		a.own.Say(core.OwnerFirst)
	}
	return decide.Free, nil
}
