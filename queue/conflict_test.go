package queue_test

import (
	"context"
	"fmt"
	"iter"
	"math"
	"path"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// A contender of another kind of lock is a conflict, at any place in the queue. The call that finds it leaves no node. The
// error says what was found.
func TestConflict(t *testing.T) {
	const id = "0b3ea4c1-6f9a-4c4e-9d53-2f1c1c8f6a01"
	for name, found := range map[string]string{
		"_c_" + id + "-lease-0000000000":   "a lease of a semaphore",
		"_c_" + id + "-__WRIT__0000009999": "a writer of a read-write lock",
		"_c_" + id + "-__READ__0000000000": "a reader of a read-write lock",
		"_c_" + id + "-latch-0000000000":   "a candidate of Curator's LeaderLatch",
		"_c_" + id + "-unfair-0000000000":  "a mutex without a queue, of a state before 0.1.0",
		"0b3ea4c16f9a__rlock__0000000000":  "a contender for kazoo's ReadLock",
	} {
		run(t, func(w world) {
			w.Make(dir+"/"+name, "")
			q := w.queue()
			_, acquired := q.Acquire(w.Context(), ask)
			_, tried := q.TryAcquire(w.Context(), ask)
			_, listed := q.Contenders(w.Context(), mutex)
			for _, err := range []error{acquired, tried, listed} {
				if w.Want(name, err, queue.ErrConflict); !strings.HasSuffix(err.Error(), ": a mutex lock finds "+found) {
					t.Errorf("error %v, want one that says %s", err, found)
				}
			}
			w.nodes("after the conflict", 0)
			w.Remove(dir + "/" + name)
			w.release(w.acquire(q))
		})
	}
}

// Contenders are listed in order, with what they say of themselves. Where there is no directory, or nobody in it, there are
// none. The holder may leave while its node is read: the next one holds then. So may the directory vanish.
func TestContenders(t *testing.T) {
	run(t, func(w world) {
		leave := map[string]func(){} // called once, when this node is read
		q := w.queue(session.WithTrace(session.Trace{
			Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
				if f := leave[r.Path]; f != nil && r.Op == "getData" {
					delete(leave, r.Path)
					f()
				}
				return ctx, nil
			},
		}))
		nobody, err := q.Contenders(w.Context(), mutex)
		if err != nil || nobody == nil || len(nobody) != 0 {
			t.Fatalf("where there is nobody: %v, %v; want an empty list", nobody, err)
		}
		named := func(data string) queue.Request { return queue.Request{Kind: mutex, Data: []byte(data)} }
		l := w.take(q, named("first"))
		second := w.begin(q, named("second")) // of the same session
		third := w.begin(w.queue(), named("third"))
		got, err := q.Contenders(w.Context(), mutex)
		if err != nil || len(got) != 3 || got[0].Path != l.Path() {
			t.Fatalf("%v, %v", got, err)
		}
		for i, data := range []string{"first", "second", "third"} {
			c := got[i]
			if string(c.Data) != data || c.Sequence != int32(i) || c.Holder != (i == 0) || path.Dir(c.Path) != dir ||
				c.Own != (i < 2) || c.HeldSince.IsZero() != (i > 0) {
				t.Errorf("contender %d is %+v (%s)", i, c, c.Data)
			}
		}
		second.Gives()
		leave[l.Path()] = func() { w.release(l) }
		got, err = q.Contenders(w.Context(), mutex)
		if err != nil || len(got) != 1 || !got[0].Holder {
			t.Errorf("%+v, %v: want one contender, which holds", got, err)
		}
		w.release(third.Get())

		lease := w.take(w.queue(), queue.Request{Kind: limited("1")})
		leave[dir] = func() {
			w.release(lease)
			w.Must(w.DeleteNode(dir))
		}
		if all, err := q.Contenders(w.Context(), limited("1")); err != nil || all == nil || len(all) > 0 {
			t.Errorf("%v, %v", all, err)
		}
		w.Want("without a directory", expect.Err(q.Contenders(w.Context(), mutex)), zk.ErrNoNode)
	})
}

// Invalid arguments are refused before any I/O, and so is a request that would be parsed as another.
func TestBadArguments(t *testing.T) {
	policy := func(queue.Node) queue.Policy { return queue.Policy{} }
	strict := func(queue.Node, queue.Config) (queue.Policy, error) { return queue.Policy{}, nil }
	mine := []string{"mine-"}
	tooLarge := math.MaxInt32
	tooLarge++ // negative on 32 bits, which is refused as well
	run(t, func(w world) {
		q := w.queue()
		w.ResetRequests()
		for what, r := range map[string]queue.Request{
			"no kind":          {},
			"an empty kind":    {Kind: &queue.Kind{}},
			"no policy":        {Kind: &queue.Kind{Prefixes: []string{queue.PrefixLock}}},
			"no prefixes":      {Kind: &queue.Kind{Policy: policy}},
			"bad prefix":       {Kind: &queue.Kind{Policy: policy, Prefixes: []string{"mine"}}},
			"former prefix":    {Kind: &queue.Kind{Policy: policy, Prefixes: []string{"mine-", "unfair-"}}},
			"two policies":     {Kind: configured(&queue.Kind{Policy: policy, Prefixes: mine}, "1", strict)},
			"no config":        {Kind: configured(&queue.Kind{Prefixes: mine}, "", strict)},
			"config, unused":   {Kind: configured(&queue.Kind{Prefixes: mine}, "1", nil)},
			"another's":        {Kind: mutex, Prefix: queue.PrefixLease},
			"negative weight":  {Kind: mutex, Weight: -1},
			"weight too large": {Kind: mutex, Weight: tooLarge},
			"name of lines":    {Kind: mutex, Name: "two\nlines"},
			"name of bytes":    {Kind: mutex, Name: "\xff"},
			"long name":        {Kind: mutex, Name: strings.Repeat("n", 201)},
			"revoking data":    {Kind: mutex, Data: []byte(queue.RevokeMessage)},
		} {
			_, err := q.Acquire(w.Context(), r)
			_, tried := q.TryAcquire(w.Context(), r)
			for _, err := range []error{err, tried, r.Check()} {
				w.Want(what, err, session.ErrInvalid)
			}
		}
		_, err := q.Acquire(w.Context(), queue.Request{Kind: mutex, Data: make([]byte, 1<<20)})
		w.Want("much data", err, session.ErrInvalid)
		for _, kind := range []*queue.Kind{nil, {}, {Prefixes: []string{"odd"}, Policy: policy}} {
			_, err := q.Contenders(w.Context(), kind)
			w.Want("Contenders", err, session.ErrInvalid)
		}
		for _, err := range q.Observe(w.Context(), &queue.Kind{}) {
			w.Want("Observe", err, session.ErrInvalid)
		}
		w.Want("First", expect.Err(q.First(w.Context(), &queue.Kind{})), session.ErrInvalid)
		expect.Requests(t, "bad arguments", w.Server, w.of(q), 0)
		good := queue.Request{Kind: queue.Writer(), Prefix: queue.PrefixRead, Weight: math.MaxInt32, Data: []byte("web-3"), Name: "prices"}
		w.Must(good.Check())
		l := w.take(q, good)
		if n, _ := queue.ParseNode(path.Base(l.Path())); n.Weight != math.MaxInt32 {
			t.Errorf("read back as %d", n.Weight)
		}
	})
}

// limited is a kind whose configuration says how many contenders may hold at a time.
func limited(limit string) *queue.Kind {
	return configured(&queue.Kind{Name: "limited", Prefixes: []string{queue.PrefixLease}}, limit,
		func(_ queue.Node, config queue.Config) (queue.Policy, error) {
			n, err := strconv.Atoi(string(config.Data))
			if err != nil {
				return queue.Policy{}, fmt.Errorf("%w: %q", queue.ErrConflict, config.Data)
			}
			return queue.Policy{Slack: n - 1}, nil
		})
}

// configured gives a kind a configuration.
func configured(k *queue.Kind, config string, policy func(queue.Node, queue.Config) (queue.Policy, error)) *queue.Kind {
	k.Configuration = &queue.Configuration{Config: []byte(config), Policy: policy}
	return k
}

// An observer is told of the first contender, of the next one when that leaves, and that nobody is left. Its last pair says
// why it ends, as that there is a contender of another kind.
func TestObserve(t *testing.T) {
	run(t, func(w world) {
		w.Remove(dir)
		q, observer := w.queue(), w.queue()
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		next, stop := iter.Pull2(observer.Observe(ctx, mutex))
		defer stop()
		want := func(what, id string) {
			t.Helper()
			now, err := observer.First(ctx, mutex)
			w.Must(err)
			first, err, more := next()
			if err != nil || !more || first.ID != id || first.Holder != (id != "") || (first.Path == "") != (id == "") || now.Path != first.Path {
				t.Fatalf("%s: %+v, %v, %v, and %+v; want %q", what, first, err, more, now, id)
			}
		}
		named := func(id string) queue.Request { return queue.Request{Kind: mutex, Data: []byte(id)} }
		want("no directory", "")
		one := w.take(q, named("one"))
		want("a holder", "one")
		two := w.begin(q, named("two"))
		w.release(one)
		w.Pass(time.Second)
		want("the next", "two")
		w.release(two.Get())
		w.Pass(time.Second)
		want("nobody", "")
		cancel()
		if _, err, more := next(); !more || err == nil {
			t.Errorf("after the end of ctx: %v, %v", err, more)
		}
		if _, _, more := next(); more {
			t.Error("another pair after an error")
		}
		w.take(q, reads)
		for _, err := range q.Observe(w.Context(), mutex) {
			w.Want("a reader", err, queue.ErrConflict)
		}
	})
}
