package place

import (
	"path"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/kinds"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// noNode stands for the event of a watch on a node that was gone when it was set.
const noNode = core.WatchEvent(-1)

// watchesOf returns a watch for each event, as a real session gives them.
func watchesOf(t *testing.T) map[core.WatchEvent]*core.Watch {
	admin, dir := testserver.Admin(t), testserver.Path(t)
	proxy := testserver.Proxy(t)
	m := testserver.Connect(t, proxy.Addr(), session.WithTimeout(10*time.Second))
	s := testserver.Session(t, m)
	ctx := t.Context()
	watch := func(name string) *core.Watch {
		if err := (*core.Session)(s).MakeParents(ctx, dir); err != nil {
			t.Fatal(err)
		}
		p := path.Join(dir, name)
		if _, err := s.Create(ctx, p, nil, session.Ephemeral); err != nil {
			t.Fatal(err)
		}
		_, _, w, err := (*core.Session)(s).Watch(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	out := map[core.WatchEvent]*core.Watch{
		core.WatchDeleted: watch("deleted"),
		core.WatchChanged: watch("changed"),
		core.WatchBroken:  watch("broken"),
	}
	w, err := (*core.Session)(s).StartWatch(ctx, path.Join(dir, "none"))
	if err != nil {
		t.Fatal(err)
	}
	<-w.Ready()
	out[noNode] = w
	testserver.Delete(t, dir, "deleted")
	if _, err := admin.Set(path.Join(dir, "changed"), []byte("new"), -1); err != nil {
		t.Fatal(err)
	}
	for _, e := range []core.WatchEvent{core.WatchDeleted, core.WatchChanged} {
		zktest.Eventually(t, testserver.Patience, "the event", func() bool { return out[e].Event() == e })
	}
	proxy.Disconnect()
	zktest.Eventually(t, testserver.Patience, "the watch to break", func() bool {
		return out[core.WatchBroken].Event() == core.WatchBroken
	})
	out[core.WatchPending] = watch("pending")
	return out
}

func TestLook(t *testing.T) {
	watches := watchesOf(t)
	const (
		pending = core.WatchPending
		deleted = core.WatchDeleted
		changed = core.WatchChanged
		broken  = core.WatchBroken
		gone    = noNode
	)
	type events = []core.WatchEvent
	for _, c := range []struct {
		what     string
		ahead    []int // weights; the last of them are watched
		watched  events
		own      core.WatchEvent
		slack    int
		replaces bool
		want     sight
	}{
		{"nothing has happened", []int{1}, events{pending}, pending, 0, false, nothingYet},
		{"the only one ahead left", []int{1}, events{deleted}, pending, 0, false, turnCame},
		{"the only one ahead was gone already", []int{1}, events{gone}, pending, 0, false, turnCame},
		{"the predecessor left, the one before stands", []int{1, 1}, events{pending, deleted}, pending, 0, false, nothingYet},
		{"the predecessor left, others are ahead", []int{1, 1, 1}, events{pending, deleted}, pending, 0, false, lookAgain},
		{"the one before left", []int{1, 1}, events{deleted, pending}, pending, 0, false, nothingYet},
		{"the one before left, others are ahead", []int{1, 1, 1}, events{deleted, pending}, pending, 0, false, lookAgain},
		{"both left", []int{1, 1}, events{deleted, gone}, pending, 0, false, turnCame},
		{"both watched left, others are ahead", []int{1, 1, 1}, events{deleted, deleted}, pending, 0, false, lookAgain},
		{"a change grants nothing", []int{1}, events{changed}, pending, 0, false, lookAgain},
		{"a broken watch grants nothing", []int{1}, events{broken}, pending, 0, false, lookAgain},
		{"a change beats a deletion", []int{1, 1}, events{changed, deleted}, pending, 0, false, lookAgain},

		{"one lighter is enough", []int{1, 1, 1}, events{pending, deleted, pending}, pending, 2, false, turnCame},
		{"light ones are not", []int{3, 1, 1}, events{pending, deleted, deleted}, pending, 2, false, nothingYet},
		{"the heavy one is", []int{3, 1, 1}, events{deleted, pending, pending}, pending, 2, false, turnCame},
		{"what is not watched counts", []int{2, 1, 1}, events{deleted, deleted}, pending, 1, false, lookAgain},

		{"one that replaces itself left", []int{1}, events{deleted}, pending, 0, true, lookAgain},
		{"one that replaces itself was gone", []int{1}, events{gone}, pending, 0, true, lookAgain},
		{"one that replaces itself stands", []int{1}, events{pending}, pending, 0, true, nothingYet},

		{"own node deleted", []int{1}, events{pending}, deleted, 0, false, placeLost},
		{"own node deleted, then the predecessor", []int{1}, events{deleted}, deleted, 0, false, placeLost},
		{"own node deleted, predecessor gone before it was watched", []int{1}, events{gone}, deleted, 0, false, placeLost},
		{"own node deleted, another watch broken", []int{1}, events{broken}, deleted, 0, false, placeLost},
		{"own watch broken", []int{1}, events{pending}, broken, 0, false, lookAgain},
		{"own watch broken, predecessor gone", []int{1}, events{gone}, broken, 0, false, lookAgain},
		{"own watch broken, predecessor deleted", []int{1}, events{deleted}, broken, 0, false, lookAgain},
		{"own data changed, predecessor deleted", []int{1}, events{deleted}, changed, 0, false, lookAgain},
	} {
		t.Run(c.what, func(t *testing.T) {
			var ahead []blocker
			for i, w := range c.ahead {
				ahead = append(ahead, blocker{node: kinds.Node{Name: string(rune('a' + i))}, weight: w, replaces: c.replaces})
			}
			targets := ahead[len(ahead)-len(c.watched):]
			var ws []*core.Watch
			for _, e := range c.watched {
				ws = append(ws, watches[e])
			}
			if got := look(weigh(ahead[:len(ahead)-len(targets)]), targets, ws, watches[c.own], false, rule{}, c.slack); got != c.want {
				t.Errorf("look = %d, want %d", got, c.want)
			}
			for i := range ahead {
				if ahead[i].node.Name != string(rune('a'+i)) {
					t.Error("look has changed what it was given")
				}
			}
		})
	}
}

// What the owners of the nodes ahead say counts if the attempt is plain. Others are ahead of these two.
func TestLookOwners(t *testing.T) {
	const (
		pending = core.WatchPending
		deleted = core.WatchDeleted
		unknown = core.OwnerUnknown
		waits   = core.OwnerWaits
		first   = core.OwnerFirst
	)
	before, predecessor := watchesOf(t), watchesOf(t)
	own := before[pending]
	type says struct {
		event core.WatchEvent
		owner core.Owner
	}
	for _, c := range []struct {
		what                string
		before, predecessor says
		want                sight
	}{
		{"the predecessor says nothing", says{deleted, unknown}, says{pending, unknown}, lookAgain},
		{"the predecessor waits", says{deleted, unknown}, says{pending, waits}, nothingYet},
		{"the predecessor holds", says{deleted, waits}, says{pending, first}, nothingYet},
		{"the predecessor has held", says{deleted, waits}, says{deleted, first}, turnCame},
		{"the predecessor has given up", says{deleted, unknown}, says{deleted, waits}, lookAgain},
		{"the predecessor has given up, the one before waits", says{pending, waits}, says{deleted, waits}, nothingYet},
		{"the predecessor gave up, the one before holds", says{pending, first}, says{deleted, waits}, nothingYet},
		{"the predecessor gave up, the one before has held", says{deleted, first}, says{deleted, waits}, turnCame},
		{"the one before has held, the predecessor stands", says{deleted, first}, says{pending, unknown}, nothingYet},
		{"the watch on the holder broke", says{deleted, unknown}, says{core.WatchBroken, first}, lookAgain},
	} {
		ws := []*core.Watch{before[c.before.event], predecessor[c.predecessor.event]}
		ws[0].Say(c.before.owner)
		ws[1].Say(c.predecessor.owner)
		targets := []blocker{{node: kinds.Node{Name: "a"}, weight: 1, plain: true}, {node: kinds.Node{Name: "b"}, weight: 1, plain: true}}
		if got := look(1, targets, ws, own, false, rule{}, 0); got != c.want {
			t.Errorf("%s: look = %d, want %d", c.what, got, c.want)
		}
		for i := range targets {
			targets[i].plain = false
		}
		if got := look(1, targets, ws, own, false, rule{}, 0); got != lookAgain {
			t.Errorf("%s, of an attempt that is not plain: look = %d, want %d", c.what, got, lookAgain)
		}
	}
}

// A configuration that has changed, or may have, comes before anything that would grant, and after the
// loss of the place.
func TestLookConfig(t *testing.T) {
	watches := watchesOf(t)
	ahead := []blocker{{node: kinds.Node{Name: "a"}, weight: 1}}
	for _, c := range []struct {
		config, own, ahead core.WatchEvent
		want               sight
	}{
		{core.WatchPending, core.WatchPending, core.WatchPending, nothingYet},
		{core.WatchPending, core.WatchPending, core.WatchDeleted, turnCame},
		{core.WatchChanged, core.WatchPending, core.WatchPending, lookAgain},
		{core.WatchChanged, core.WatchPending, core.WatchDeleted, lookAgain},
		{core.WatchDeleted, core.WatchPending, core.WatchDeleted, lookAgain},
		{core.WatchBroken, core.WatchPending, core.WatchDeleted, lookAgain},
		{core.WatchDeleted, core.WatchDeleted, core.WatchDeleted, placeLost},
	} {
		a := &attempt{configW: watches[c.config]}
		_, stat, _ := a.configW.Result()
		a.config.Changed = stat.Mzxid
		got := look(0, ahead, []*core.Watch{watches[c.ahead]}, watches[c.own], a.reconfigured(), rule{}, 0)
		if got != c.want {
			t.Errorf("config %v, own %v, ahead %v: look = %d, want %d", c.config, c.own, c.ahead, got, c.want)
		}
		if a.config.Changed--; !a.reconfigured() {
			t.Errorf("config %v: it is not the one of the listing, and counts", c.config)
		}
	}
}

// An attempt that may count other nodes than its neighbours do, or that may go while one stands, is not plain.
func TestPlain(t *testing.T) {
	one := func(change func(*attempt)) bool {
		a := &attempt{ownNode: &ownNode{r: &Request{Kind: &kinds.Kind{Prefixes: []string{kinds.PrefixLock, kinds.PrefixKazooLock}}}}}
		change(a)
		return a.plain()
	}
	if !one(func(*attempt) {}) {
		t.Error("a contender for a mutex is not plain")
	}
	for what, change := range map[string]func(*attempt){
		"another prefix":   func(a *attempt) { a.r.Kind.Prefixes = append(a.r.Kind.Prefixes, "own-") },
		"a weight":         func(a *attempt) { a.policy.Weight = func(kinds.Node) int { return 0 } },
		"a replacement":    func(a *attempt) { a.policy.Replaces = func(kinds.Node) bool { return true } },
		"slack":            func(a *attempt) { a.slack = 1 },
		"a configuration":  func(a *attempt) { a.r.Kind.Configuration = &kinds.Configuration{} },
		"beside a lease":   func(a *attempt) { a.entry.beside = &Lease{} },
		"a twin, possibly": func(a *attempt) { a.doubt = true },
	} {
		if one(change) {
			t.Errorf("%s: plain", what)
		}
	}
}
