package place

import (
	"context"
	"errors"
	"fmt"
	"path"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/internal/watches"
	"github.com/turnstile-go/turnstile/kinds"
)

// seenNode is a watch on a node that stands, or has gone.
type seenNode struct {
	data string
	stat zk.Stat
	gone bool
	bare bool            // nobody has asked for its data
	lost core.WatchEvent // how its watch has ended, if the node may still stand
}

func (w seenNode) watch() *core.Watch {
	event := core.WatchPending
	if w.gone {
		event = core.WatchDeleted
	}
	if w.lost != core.WatchPending {
		event = w.lost
	}
	if w.bare {
		return new(core.Watch)
	}
	return watches.Seen([]byte(w.data), &w.stat, event)
}

// aView makes a view by one contender of those that it watches, the first of which came 12.5 s ago, and
// each further one a second later.
func aView(change func(*view), prefix string, watches ...seenNode) *view {
	v := &view{session: 1, head: len(watches), counted: true, me: &kinds.Node{Prefix: prefix, Sequence: 100}}
	for i, w := range watches {
		w.stat.Ctime = int64(i * 1000)
		if w.stat.EphemeralOwner == 0 {
			w.stat.EphemeralOwner = 2
		}
		if w.data == "by hand" {
			w.stat.EphemeralOwner = 0
		}
		v.targets = append(v.targets, decide.Blocker{Node: kinds.Node{Prefix: prefix, Sequence: int32(i)}, Weight: 1})
		v.watches = append(v.watches, w.watch())
	}
	if change != nil {
		change(v)
	}
	return v
}

func TestViewText(t *testing.T) {
	const ours = `{"id":"web-3/4711","label":"request 42"}`
	beyond := func(v *view) { v.beyond, v.head = 5, 0 }
	readersAhead := func(v *view) { v.head = 0 }
	limit := func(n int) func(*view) { return func(v *view) { v.limit = n } }
	mine := seenNode{data: ours, stat: zk.Stat{EphemeralOwner: 1}}
	gone := seenNode{data: "gone", gone: true}
	for _, c := range []struct {
		what string
		v    *view
		want string
	}{
		{"the holder", aView(nil, kinds.PrefixLock, seenNode{data: ours}),
			`held by web-3/4711, "request 42", in the queue for 12s`},
		{"the holder and another", aView(nil, kinds.PrefixLock, seenNode{data: ours}, seenNode{data: "b"}),
			`held by web-3/4711, "request 42", in the queue for 12s; 1 more ahead`},
		{"the holder has gone", aView(nil, kinds.PrefixLock, gone, seenNode{data: "192.168.1.7"}),
			`held by 192.168.1.7, in the queue for 11s`},
		{"many", aView(beyond, kinds.PrefixLock, seenNode{data: ours}, seenNode{data: "b"}),
			`behind b, in the queue for 11s; up to 6 more ahead`},
		{"one of many has gone", aView(beyond, kinds.PrefixLock, gone, seenNode{data: "b"}),
			`behind b, in the queue for 11s; up to 5 more ahead`},
		{"the data of the holder has changed", aView(nil, kinds.PrefixLock, seenNode{data: ours, lost: core.WatchChanged}, seenNode{data: "b"}),
			`behind b, in the queue for 11s`},
		{"the watch on the holder was lost", aView(nil, kinds.PrefixLock, seenNode{data: ours, lost: core.WatchBroken}, seenNode{data: "b"}),
			`behind b, in the queue for 11s`},
		{"a holder that may have become a reader", aView(func(v *view) { v.targets[0].Replaces = true }, kinds.PrefixWrite, gone, seenNode{data: "b"}),
			`behind b, in the queue for 11s`},
		{"all have gone", aView(nil, kinds.PrefixLock, gone, gone), ""},
		{"a writer that may wait for readers", aView(readersAhead, kinds.PrefixWrite, seenNode{data: "w"}),
			`behind w, in the queue for 12s`},
		{"this process", aView(nil, kinds.PrefixLock, mine), `held by this process, "request 42", in the queue for 12s`},
		{"a text with spaces", aView(nil, kinds.PrefixLock, seenNode{data: `my "job" (nightly)`}),
			`held by "my \"job\" (nightly)", in the queue for 12s`},
		{"binary data", aView(nil, kinds.PrefixLock, seenNode{data: "\x1b[2J"}), `held by lock-0000000000, in the queue for 12s`},
		{"asked to release", aView(nil, kinds.PrefixLock, seenNode{data: kinds.RevokeMessage}),
			`held by lock-0000000000, which was asked to release it, in the queue for 12s`},
		{"made by hand", aView(nil, kinds.PrefixLock, seenNode{data: "by hand"}),
			`held by "by hand", whose node has no session and stays until it is deleted, in the queue for 12s`},
		{"a semaphore", aView(limit(3), kinds.PrefixLease, seenNode{data: "a"}, seenNode{data: "b"}, seenNode{data: "c"}, seenNode{data: "d"}),
			`3 of 3 leases taken; held by a, in the queue for 12s; 3 more ahead`},
		{"a semaphore with leases that are free", aView(limit(3), kinds.PrefixLease, seenNode{data: "a"}, gone, seenNode{data: "c"}),
			`2 of 3 leases taken; held by a, in the queue for 12s; 1 more ahead`},
		{"a semaphore with a long queue", aView(func(v *view) { beyond(v); v.limit = 3 }, kinds.PrefixLease, seenNode{data: "a"}, seenNode{data: "b"}),
			`limit of 3 leases; behind b, in the queue for 11s; up to 6 more ahead`},
		{"a semaphore whose limit was lowered", aView(func(v *view) { v.limit, v.counted = 2, false }, kinds.PrefixLease, seenNode{data: "a"}),
			`limit of 2 leases; held by a, in the queue for 12s`},
		{"a semaphore with one lease", aView(limit(1), kinds.PrefixLease, seenNode{data: "a"}), `held by a, in the queue for 12s`},
		{"a holder behind us, by a former limit", aView(func(v *view) { v.head, v.me.Sequence, v.limit, v.counted = 0, -1, 2, false }, kinds.PrefixLease, seenNode{data: "a"}),
			`limit of 2 leases; waiting for a, in the queue for 12s`},
		{"a short wait", aView(nil, kinds.PrefixLock, seenNode{bare: true}, seenNode{bare: true}), `held by lock-0000000000; 1 more ahead`},
	} {
		if got := c.v.reason(time.UnixMilli(12_500)).Reason; got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.what, got, c.want)
		}
	}
}

// The leases of a semaphore that a contender asks for count, up to the first that must wait.
func TestViewTextWeights(t *testing.T) {
	v := aView(func(v *view) { v.limit = 4 }, kinds.PrefixLease, seenNode{data: "a"}, seenNode{data: "b"}, seenNode{data: "c"})
	v.targets[0].Weight, v.targets[1].Weight = 3, 2
	if got, want := v.reason(time.UnixMilli(0)).Reason, "3 of 4 leases taken; held by a, in the queue for 0s; 2 more ahead"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The age of a node goes by the ensemble's clock: the client's may be far off. It is never negative.
func TestViewAge(t *testing.T) {
	known := time.UnixMilli(1_000_000)
	v := &view{own: seenNode{stat: zk.Stat{Ctime: 20_000}}.watch(), known: known}
	for made, want := range map[int64]time.Duration{8_000: 15 * time.Second, 20_000: 3 * time.Second, 60_000: 0} {
		if got := v.age(&zk.Stat{Ctime: made}, known.Add(3*time.Second)); got != want {
			t.Errorf("made at %d: %v, want %v", made, got, want)
		}
	}
}

// Only the end of the caller's context is explained, and the error goes on matching it.
func TestExplain(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	why := func() kinds.WaitError { return kinds.WaitError{Reason: "held by a"} }
	err := because(ctx, fmt.Errorf("getChildren /a: %w", context.Canceled), why)
	if !errors.Is(err, context.Canceled) || err.Error() != "getChildren /a: context canceled (held by a)" {
		t.Error(err)
	}
	if again := because(ctx, err, why); again != err {
		t.Error(again)
	}
	if err := because(ctx, ErrConflict, why); err != ErrConflict {
		t.Error(err)
	}
	if err := new(attempt).explain(context.Background(), ErrConflict); err != ErrConflict {
		t.Error(err)
	}
}

// The error of a wait has the contender that it names.
func TestReasonAhead(t *testing.T) {
	v := aView(nil, kinds.PrefixLock, seenNode{data: `{"id":"web-3/4711","label":"request 42"}`}, seenNode{data: "b"})
	v.dir = "/locks/a"
	got := v.reason(time.UnixMilli(12_500)).Ahead
	if got.ID != "web-3/4711" || got.Label != "request 42" || !got.Holder || got.Path != path.Join(v.dir, v.targets[0].Node.Name) {
		t.Errorf("%+v", got)
	}
	if got := aView(nil, kinds.PrefixLock).reason(time.Now()); got.Reason != "" || got.Ahead.Path != "" {
		t.Errorf("nobody is ahead: %+v", got)
	}
}
