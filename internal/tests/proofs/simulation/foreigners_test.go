package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// This file has other programs that make nodes where contenders stand, with names, weights and data as absurd as the servers
// allow. While such a node stands, calls may wait for it or conflict with it. No two of ours may hold because of it, none may
// stay stuck when it has gone, and none may take the node of another session for its own.

// foreigners makes and removes such nodes.
type foreigners struct {
	w   *world
	rng *rand.Rand
	all []*foreigner // guarded by checks.mu
}

// foreigner is a node of another program.
type foreigner struct {
	path, dir  string
	effect     effect
	made, left time.Time // when the servers had said that it was made, and that it was gone; zero until then
}

// effect is what a node may do to the contenders in its directory.
type effect int

const (
	noEffect effect = iota // it is no contender
	isBehind               // it is the last contender
	isAhead                // it is the first contender, or one of the first
	copies                 // it has the id of one of ours, and is ahead of that
	effects                // how many there are: a conflict is none, since the worlds with several kinds have that
)

// newForeigners returns those of a seed; nil in two seeds of three, which have none.
func newForeigners(w *world) *foreigners {
	if mix(w.seed, "foreigners")%3 > 0 || w.operator.m == nil {
		return nil
	}
	return &foreigners{w: w, rng: rand.New(rand.NewPCG(w.seed, 4))}
}

// run makes and removes nodes in the chaos, and in the calm such as have no effect.
func (f *foreigners) run(stop <-chan struct{}) {
	gap := []time.Duration{300, 1000, 3000}[f.rng.IntN(3)] * time.Millisecond
	for {
		f.w.sleepAs(operatorSlot, time.Duration(f.rng.Int64N(int64(gap))), "foreign")
		select {
		case <-stop:
			f.expel()
			return
		default:
		}
		switch f.w.in() {
		case chaos, calm:
			f.come()
		default:
			f.expel()
		}
	}
}

// come makes a node, lets it stand for a while, and removes it.
func (f *foreigners) come() {
	all := f.w.contenders("")
	if len(all) == 0 {
		return
	}
	like := all[f.rng.IntN(len(all))]
	n, _ := queue.ParseNode(path.Base(like.path))
	e := effect(f.rng.IntN(int(effects)))
	if f.w.in() != chaos || f.w.kind.election || e == copies && n.ID == "" {
		e = noEffect
	}
	names := f.names(n)[e]
	name := names[f.rng.IntN(len(names))]
	if _, ok := queue.ParseNode(name); ok != (e != noEffect) || name == n.Name {
		return // the same name means something else here
	}
	one := &foreigner{path: path.Join(like.dir, name), dir: like.dir, effect: e}
	cs := f.w.checks
	cs.mu.Lock()
	f.all = append(f.all, one)
	cs.mu.Unlock()
	data := []string{"", queue.RevokeMessage, "\xff\xfe", `{"maxLeases":-1}`, `{"id":7}`, strings.Repeat("x", 5000)}[f.rng.IntN(6)]
	persistent := f.rng.IntN(3) == 0
	err := f.ask(time.Second, func(ctx context.Context, s *session.Session) (err error) {
		if persistent {
			_, err = s.Create(ctx, one.path, []byte(data), session.Persistent)
		} else {
			_, err = s.Enter(ctx, session.NewNode{Dir: one.dir, Name: name, Data: []byte(data), Fixed: true})
		}
		return err
	})
	f.w.trace.add("oper", "foreign %s: %v", one.path, err == nil)
	if err == nil {
		cs.mu.Lock()
		one.made = time.Now()
		cs.mu.Unlock()
	}
	f.w.sleepAs(operatorSlot, time.Duration(f.rng.IntN(2000))*time.Millisecond, "foreign")
	f.expel()
}

// ask does something on the servers as an operator.
func (f *foreigners) ask(d time.Duration, do func(context.Context, *session.Session) error) error {
	ctx, cancel := within(d)
	defer cancel()
	s, err := f.w.operator.m.Session(ctx)
	if err != nil {
		return err
	}
	return do(ctx, s)
}

// errNotShown says that a server which lags behind does not show a node yet.
var errNotShown = errors.New("not shown")

// expel removes the nodes that stand. In chaos that can fail, and is done again later.
func (f *foreigners) expel() {
	cs := f.w.checks
	cs.mu.Lock()
	var standing []*foreigner
	for _, one := range f.all {
		if one.left.IsZero() {
			standing = append(standing, one)
		}
	}
	cs.mu.Unlock()
	for _, one := range standing {
		err := f.ask(5*time.Second, func(ctx context.Context, s *session.Session) error {
			// A create whose reply was lost can be carried out after a read has shown no node, but not behind a write.
			if _, err := s.Multi(ctx, &zk.CheckVersionRequest{Path: one.path, Version: -1}); err != nil {
				return err
			}
			stat, err := s.Exists(ctx, one.path)
			switch {
			case err != nil:
				return err
			case stat == nil:
				return errNotShown
			case stat.EphemeralOwner != 0 && stat.EphemeralOwner != s.ID(): // that is one of ours
				return nil
			}
			return s.Delete(ctx, one.path, -1)
		})
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			continue
		}
		f.w.trace.add("oper", "foreign %s leaves", one.path)
		cs.mu.Lock()
		one.left = time.Now()
		cs.mu.Unlock()
	}
}

// names returns absurd names beside that of a contender, by what they do to it.
func (f *foreigners) names(n queue.Node) map[effect][]string {
	id := uuid.UUID{14: byte(len(f.all) >> 8), 15: byte(len(f.all))}.String()
	own := func(rest string) string { return "_c_" + id + "-" + rest }
	out := map[effect][]string{
		noEffect: {
			n.Prefix, own(n.Prefix), own(n.Prefix + "7"), own(n.Prefix + "99999999999"), own(n.Prefix + "4294967295"),
			own(n.Prefix + "0x00000001"), "x999999999-lease-", own("x999999999-" + n.Prefix), "_c_-", "resize-", "__REVOKE__",
			"_c_" + n.Prefix + "0000000000",
			own("not" + strings.Trim(n.Prefix, "_") + "0000000000"), "\u2028",
		},
		isBehind: {n.Prefix + "2147483647", own(n.Prefix + "2147483647"), own("keep-x999999999-" + n.Prefix + "2147483647")},
		isAhead: {
			n.Prefix + "0000000000", own(n.Prefix + "0000000000"), own(n.Prefix + "-000000001"), own(n.Prefix + "-2147483648"),
			own("x999999999-" + n.Prefix + "0000000000"), own("x2147483647-" + n.Prefix + "0000000000"),
			own("x2147483648-" + n.Prefix + "0000000000"), own("x0-" + n.Prefix + "0000000000"), own("x-5-" + n.Prefix + "0000000000"),
			own("keep-" + n.Prefix + "0000000000"), own("keep-keep-x1-" + n.Prefix + "-999999999"),
			"_c_-" + n.Prefix + "0000000000",
		},
	}
	if n.ID != "" {
		out[copies] = []string{
			queue.NodeName(n.ID, n.Prefix, 1, false) + "0000000000", queue.NodeName(n.ID, n.Prefix, 999_999_999, true) + "-000000001",
			queue.NodeName(n.ID, n.Prefix, 1, false) + fmt.Sprintf("%010d", max(n.Sequence, 1)-1),
		}
	}
	return out
}

// metLocked reports whether a foreign node with one of the effects may have stood in a directory, or below it, since a moment.
func (cs *checks) metLocked(dir string, since time.Time, effects ...effect) bool {
	f := cs.w.foreigners
	return f != nil && slices.ContainsFunc(f.all, func(one *foreigner) bool {
		here := one.dir == dir || strings.HasPrefix(one.dir, dir+"/")
		return here && (one.left.IsZero() || !one.left.Before(since)) && slices.Contains(effects, one.effect)
	})
}

// foreignLocked returns the foreign node at a path, or nil.
func (cs *checks) foreignLocked(node string) *foreigner {
	if f := cs.w.foreigners; f != nil {
		for _, one := range slices.Backward(f.all) {
			if one.path == node {
				return one
			}
		}
	}
	return nil
}

// besideForeignLocked returns what a foreign node weighs for a grant. The node counts if it was made
// before the contender of ours entered, whose node this is the first grant of. Nothing says that of one that others of the
// process have made.
func (cs *checks) besideForeignLocked(f *foreigner, c contender, k *worker, n queue.Node, at place) int {
	e := k.current.entry
	if k.current.perCall || cs.granted[at] > 1 || f.made.IsZero() || !f.made.Before(e.start) || f.dir != path.Dir(at.node) {
		return 0
	}
	for other := range cs.granted { // a writer that becomes a reader has stood for longer
		o, _ := queue.ParseNode(path.Base(other.node))
		if other != at && other.session == at.session && path.Dir(other.node) == f.dir && o.Sequence == n.Sequence {
			return 0
		}
	}
	switch {
	case f.effect != isAhead || c.seq >= n.Sequence:
		return 0
	case path.Base(f.dir) == "leases": // in Curator's layout a node is a lease, whatever its name says
		return 1
	}
	return weight(c.mode, modeOf(n))
}
