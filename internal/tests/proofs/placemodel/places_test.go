package placemodel

import (
	"slices"

	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/kinds"
)

// What an attempt does. Package decide says what follows; the rest stands for the lines of package place that
// pages_test.go names.

// hear gives an attempt an input, and carries out what follows.
func (r *run) hear(i int8, in decide.Input) {
	a := &r.world.attempts[i]
	move, ok := r.rules.step(a.state, in)
	if !ok {
		r.fail("a place that is %v hears: %v", a.state, in)
		return
	}
	r.tell("    %s%d: %v, so it is %v %v", r.of(a.client), a.id, in, move.To, move.Out)
	r.waited = a.state == decide.Waiting
	a.state = move.To
	switch move.Do {
	case decide.Create:
		if a.stage = creating; a.after == none {
			a.after = r.eraOf(a.client)
			if a.renews != none {
				a.after = max(a.after, r.world.attempts[a.renews].era)
			}
		}
	case decide.Seek:
		a.doubt, a.stage = true, syncing
	case decide.Judge:
		r.judge(i)
	case decide.Watch:
		r.look(i)
	case decide.Look:
		r.look(i)
	case decide.List:
		a.stage = listing
	case decide.Remove:
		r.leave(i)
	}
	r.settle(i, move.Out)
}

// settle does what the caller of an attempt does with the outcome.
func (r *run) settle(i int8, out decide.Outcome) {
	a := &r.world.attempts[i]
	switch out {
	case decide.Waits:
		a.stage = watches
	case decide.Granted:
		r.granted(i)
	case decide.Renews:
		a.stage = acts
		r.renew(i)
	case decide.Again:
		r.again(i)
	case decide.Failed:
		if a.call != none && a.beside != none && r.world.calls[a.call].phase == downgrades {
			r.world.calls[a.call].phase = holds
		}
		*a = attempt{}
	}
}

// answerList answers an attempt's request for a listing.
func (r *run) answerList(i int8) {
	a := &r.world.attempts[i]
	in := r.seen(a.client, a.dir)
	r.tell("the server of %s lists %s", r.of(a.client), r.list(in))
	if a.stage == synced {
		r.sought(i, in)
		return
	}
	if a.failed = in>>a.node&1 == 0; a.failed && !a.joint {
		r.hear(i, decide.Lost)
		return
	}
	if a.names = in; a.lazy && !a.waited {
		a.children = pending
	}
	if len(r.configs) > 0 && a.era != r.eraOf(a.client) {
		a.stage = reading
		return
	}
	r.shown(i)
}

// answerReading answers the request for the configuration that was sent with a listing. If it was answered
// before the listing, both were asked for again.
func (r *run) answerReading(i int8) {
	a := &r.world.attempts[i]
	a.era = r.eraOf(a.client)
	r.tell("the server of %s says that the limit is %d", r.of(a.client), r.limits[a.era])
	r.shown(i)
}

// shown follows when an attempt has a listing that shows its node.
func (r *run) shown(i int8) {
	switch a := &r.world.attempts[i]; {
	case a.state == decide.Stale:
		r.hear(i, decide.Listed)
	case a.state == decide.Entering:
		r.hear(i, decide.Made)
	default:
		r.hear(i, decide.Found)
	}
}

// sync has the leader answer a sync. The server of the client answers once it has caught up.
func (r *run) sync(i int8) {
	a := &r.world.attempts[i]
	r.tell("the leader gets the sync of %s", r.of(a.client))
	for j := range r.world.attempts {
		if b := &r.world.attempts[j]; b.used && b.stage == syncing && (int8(j) == i || a.joint &&
			b.joint && b.call == a.call) {
			if b.stage, b.need = synced, r.world.length; r.rules.noSync {
				b.need = 0
			}
		}
	}
}

// sought follows when an attempt has listed to find the node of a create whose reply was lost.
func (r *run) sought(i int8, in uint16) {
	a := &r.world.attempts[i]
	for j := range int8(maxNodes) {
		n := &r.world.nodes[j]
		if in>>j&1 == 0 || n.client != a.client || n.id != a.id || n.old {
			continue
		}
		if a.node == none {
			a.node = j
		} else {
			n.leaving = leaves
		}
	}
	a.names = in
	if a.joint {
		a.stage = listed
		r.foundTogether(a.call)
		return
	}
	r.soughtAlone(i)
}

func (r *run) soughtAlone(i int8) {
	a := &r.world.attempts[i]
	switch {
	case a.node == none:
		a.names = 0
		r.hear(i, decide.NotFound)
	case len(r.configs) > 0 && a.era != r.eraOf(a.client):
		r.placed(i)
		a.stage = reading
	default:
		r.placed(i)
		r.hear(i, decide.Found)
	}
}

// judge decides by the listing.
func (r *run) judge(i int8) {
	a := &r.world.attempts[i]
	if a.joint {
		a.stage = listed
		r.decideTogether(a.call)
		return
	}
	ahead, ok := r.decide(i)
	switch {
	case !ok && a.beside == none:
		r.giveUp(a.call)
	case !ok: // the writer's node is gone
		c := a.call
		r.quitAll(c)
		r.world.calls[c].next()
	case ahead.MayGo():
		r.free(i)
	default:
		a.names = 0
		r.startWait(i, ahead)
		r.hear(i, decide.Ahead)
	}
}

// decide returns the nodes in the way of an attempt, by its listing. It returns false for an error.
func (r *run) decide(i int8) (*decide.Tail, bool) {
	a := &r.world.attempts[i]
	c := r.contender(a)
	if !r.setRule(a, &c) {
		return nil, false
	}
	names := r.names(a.names)
	if a.beside != none {
		if c.Beside = r.nodeOf(&r.world.nodes[a.beside]).Name; a.names>>a.beside&1 == 0 {
			return nil, false
		}
	}
	seen := r.rules.read(&c, names)
	for _, twin := range seen.Twins {
		r.world.nodes[r.slot(twin)].leaving = leaves
	}
	r.takeOver(i)
	for _, b := range r.behind(a, &c, names) {
		seen.Ahead.Add(b)
	}
	if seen.Ahead.Sort(); a.lazy && seen.Crowded && !r.rules.keepsCrowded {
		a.children = none // newTenure
	}
	return seen.Ahead, true
}

// contender returns an attempt as package decide sees it.
func (r *run) contender(a *attempt) decide.Contender {
	return decide.Contender{Kind: r.sorts[a.sort].kind, Node: r.nodeOf(&r.world.nodes[a.node]),
		Doubt: a.doubt, Lazy: a.lazy}
}

// ruleOf returns the rule of an attempt. It keeps it, since it takes long to read a configuration.
func (r *run) ruleOf(a *attempt) (decide.Rule, error) {
	n := &r.world.nodes[a.node]
	key := ruleKey{nodeKey{n.client, n.id, n.dir, n.sort, n.seq}, a.era}
	if k, ok := r.known[key]; ok {
		return k.rule, k.err
	}
	var c kinds.Config
	if len(r.configs) > 0 {
		c = r.configs[a.era]
	}
	rule, err := decide.RuleOf(r.sorts[a.sort].kind, r.nodeOf(n), c)
	r.known[key] = known{rule, err}
	return rule, err
}

// slot returns the slot of a node.
func (r *run) slot(n kinds.Node) int8 {
	for i := range int8(maxNodes) {
		if one := &r.world.nodes[i]; one.used && r.nodeOf(one).Name == n.Name {
			return i
		}
	}
	panic("no such node: " + n.Name)
}

// free follows when nothing is in the way.
func (r *run) free(i int8) {
	a := &r.world.attempts[i]
	if a.outdated {
		r.hear(i, decide.Outdated)
		return
	}
	if a.own != none && r.plain(a) {
		r.world.watches[a.own].word = saysFirst
	}
	r.hear(i, decide.Free)
}

// startWait watches the node of an attempt, and those in its way that the rule names. The caller looks at the
// watches.
func (r *run) startWait(i int8, ahead *decide.Tail) {
	a := &r.world.attempts[i]
	a.waited = !(a.before != none && a.lazy && ahead.Count() == 1 && r.slot(ahead.Last[0].Node) == a.before)
	a.before, a.children, a.rest = none, none, int8(ahead.Rest)
	if !r.rules.noOwn {
		a.own = r.watch(a.client, a.node)
		if r.plain(a) {
			r.world.watches[a.own].word = saysWaits
		}
	}
	if len(r.configs) > 0 {
		a.config = asked
	}
	last := a.on
	for j := range a.on {
		if a.on[j] = none; j >= len(ahead.Last) {
			continue
		}
		at := r.slot(ahead.Last[j].Node)
		for _, one := range last { // lastWatch
			if one != none && r.world.watches[one].node == at && r.world.watches[one].state != unclear {
				a.on[j] = one
			}
		}
		if a.on[j] == none {
			a.on[j] = r.watch(a.client, at)
		}
	}
}

// watch returns the watch of a client on a node, and asks for one if there is none.
func (r *run) watch(c, on int8) int8 {
	w := r.world
	for i := range int8(maxWatches) {
		if one := &w.watches[i]; one.used && one.client == c && one.node == on && one.state <= pending {
			return i
		}
	}
	for i := range int8(maxWatches) {
		if !w.watches[i].used {
			w.watches[i] = watch{used: true, client: c, node: on}
			return i
		}
	}
	panic("no slot for a watch is free")
}

// plain is plain of an attempt.
func (r *run) plain(a *attempt) bool {
	k := r.sorts[a.sort].kind
	if a.doubt || a.beside != none || k.Configuration != nil {
		return false
	}
	rule, err := r.ruleOf(a)
	return err == nil && rule.Weight == nil && rule.Replaces == nil && rule.Slack == 0
}

// look looks at the watches of a wait.
func (r *run) look(i int8) {
	a := &r.world.attempts[i]
	a.wake = false
	in := r.sight(a)
	if in == decide.Free && !r.rules.noOwnAnswer &&
		(a.own != none && r.world.watches[a.own].state == asked || a.config == asked) {
		a.blocked, a.stage = true, watches
		return
	}
	switch {
	case in == decide.Free && !a.waited:
		r.hear(i, decide.Stirred)
	case in == decide.Free:
		r.free(i)
	default:
		r.hear(i, in)
	}
}

// sight is what the watches of a wait say.
func (r *run) sight(a *attempt) decide.Input {
	rule, err := r.ruleOf(a)
	if err != nil {
		panic(err)
	}
	var targets []decide.Blocker
	var seen []decide.Sight
	for _, on := range a.on {
		if on == none {
			continue
		}
		one := &r.world.watches[on]
		b, _ := decide.BlockerOf(r.nodeOf(&r.world.nodes[one.node]), rule.Policy)
		lasts := one.told && rule.Lowered != 0 && r.czxid(r.world.nodes[one.node].era) > rule.Lowered
		s := decide.Sight{Event: eventOf(one), Moves: b.Replaces && !lasts}
		if r.plain(a) {
			s.Waits, s.Served = one.word == saysWaits, one.word == saysFirst
		}
		targets, seen = append(targets, b), append(seen, s)
	}
	own := decide.Stands
	if a.own != none {
		own = eventOf(&r.world.watches[a.own])
	}
	reconfigured := a.config == unclear || a.config == pending && a.configEra != a.era
	return r.rules.see(int(a.rest), targets, seen, own, reconfigured, r.slackOf(a, rule))
}

func eventOf(w *watch) decide.Event {
	switch w.state {
	case deleted:
		return decide.Gone
	case unclear:
		return decide.Unclear
	}
	return decide.Stands
}

// leave has the nodes of an attempt deleted for certain, and those that its creates may have made or may
// still make.
func (r *run) leave(i int8) {
	w, a := r.world, &r.world.attempts[i]
	if old := a.renews; old != none {
		a.renews = none
		defer r.hear(old, decide.Quit)
	}
	if r.rules.staysBehind {
		return
	}
	if a.stage == creating {
		r.abandon(a, false)
	}
	for j := range w.nodes {
		n := &w.nodes[j]
		if n.used && !n.gone && !n.old && n.client == a.client && n.id == a.id && (int8(j) == a.node ||
			!n.orphaned) && n.leaving != leavesNext {
			n.leaving = leaves
		}
	}
	if a.doubt && !r.rules.noSweep {
		r.startSweep(a.client, a.id)
	}
}

// abandon leaves a create to itself that is under way. Nobody knows what becomes of it if its reply is lost.
func (r *run) abandon(a *attempt, lost bool) {
	c := create{used: true, client: a.client, id: a.id, dir: a.dir, sort: a.sort, beside: a.beside,
		renews: none, lost: lost}
	if a.renews != none {
		c.renews = r.world.attempts[a.renews].node
	}
	for i := range r.world.creates {
		if !r.world.creates[i].used {
			r.world.creates[i] = c
			return
		}
	}
	panic("no slot for a create is free")
}

func (r *run) startSweep(c, id int8) {
	s := sweep{used: true, client: c, id: id}
	if slices.Contains(r.world.sweeps[:], s) {
		return
	}
	for i := range r.world.sweeps {
		if !r.world.sweeps[i].used {
			r.world.sweeps[i] = s
			return
		}
	}
	panic("no slot for a sweep is free")
}
