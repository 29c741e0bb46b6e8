package place

import (
	"path"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
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
	// The plain client makes no container, for which a server of 3.4 ends the connection.
	if _, err := admin.Create(dir, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	watch := func(name string) *core.Watch {
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

// What the ends of watches of a real session mean. The end of a node whose contender may move proves nothing.
func TestSight(t *testing.T) {
	watches := watchesOf(t)
	for event, want := range map[core.WatchEvent]decide.Event{
		core.WatchPending: decide.Stands, core.WatchDeleted: decide.Gone, noNode: decide.Gone,
		core.WatchChanged: decide.Unclear, core.WatchBroken: decide.Unclear,
	} {
		if got := eventOf(watches[event]); got != want {
			t.Errorf("event %v: %d, want %d", event, got, want)
		}
	}
	ahead, own := watches[core.WatchDeleted], watches[core.WatchPending]
	_, stat, _ := ahead.Result()
	for _, c := range []struct {
		replaces bool
		lowered  int64
		want     decide.Input
	}{
		{false, 0, decide.Free},
		{true, 0, decide.Stirred},
		{true, stat.Czxid, decide.Stirred},
		{true, stat.Czxid - 1, decide.Free}, // no limit was lowered since its node is there
	} {
		a := &attempt{
			place: &place{r: &Request{Kind: mutexKind}, own: own},
			view:  &view{targets: []decide.Blocker{{Weight: 1, Replaces: c.replaces}}, watches: []*core.Watch{ahead}},
		}
		a.policy.Lowered = c.lowered
		if got := a.sight(&wait{}); got != c.want {
			t.Errorf("replaces %v, lowered at %d: %d, want %d", c.replaces, c.lowered, got, c.want)
		}
	}
}

// What a contender says counts if the attempt that waits is plain.
func TestSightOfOwners(t *testing.T) {
	watches := watchesOf(t)
	ahead := watches[core.WatchDeleted]
	ahead.Say(core.OwnerFirst)
	for plain, want := range map[bool]decide.Input{true: decide.Free, false: decide.Stirred} {
		a := &attempt{
			place: &place{r: &Request{Kind: mutexKind}, own: watches[core.WatchPending]},
			view:  &view{targets: []decide.Blocker{{Weight: 1}}, watches: []*core.Watch{ahead}, plain: plain},
		}
		if got := a.sight(&wait{rest: 1}); got != want {
			t.Errorf("plain %v: %d, want %d", plain, got, want)
		}
	}
}

// A configuration counts as changed when its watch has ended, or has told of another transaction than the listing.
func TestReconfigured(t *testing.T) {
	watches := watchesOf(t)
	for event, want := range map[core.WatchEvent]bool{
		core.WatchPending: false, core.WatchChanged: true, core.WatchDeleted: true, core.WatchBroken: true,
	} {
		a := &attempt{configW: watches[event]}
		_, stat, _ := a.configW.Result()
		a.config.Changed = stat.Mzxid
		if got := a.reconfigured(); got != want {
			t.Errorf("config %v: %v", event, got)
		}
		if a.config.Changed--; !a.reconfigured() {
			t.Errorf("config %v: it is not the one of the listing, and counts", event)
		}
	}
}

// An attempt that may count other nodes than its neighbours do, or that may go while one stands, is not plain.
func TestPlain(t *testing.T) {
	one := func(change func(*attempt)) bool {
		a := &attempt{place: &place{r: &Request{Kind: &kinds.Kind{Prefixes: []string{kinds.PrefixLock, kinds.PrefixKazooLock}}}}}
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
