package queue_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// put creates a child as another client would, and returns its path.
func put(t *testing.T, dir, name, data string, flags int32) string {
	t.Helper()
	made, err := testserver.Admin(t).Create(path.Join(dir, name), []byte(data), flags, zk.WorldACL(zk.PermAll))
	mustBe(t, err, nil)
	return made
}

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
		t.Run(name[len(name)-17:], func(t *testing.T) {
			dir := persistentDir(t)
			q := client(t, dir)
			other := put(t, dir, name, "", 0)
			_, err := q.Acquire(patient(t), ask)
			mustBe(t, err, queue.ErrConflict)
			_, err = q.TryAcquire(patient(t), ask)
			mustBe(t, err, queue.ErrConflict)
			_, err = q.Contenders(patient(t), mutex)
			mustBe(t, err, queue.ErrConflict)
			if text := err.Error(); !strings.HasSuffix(text, ": a mutex lock finds "+found) {
				t.Errorf("error %v, want one that says %s", err, found)
			}
			testserver.WaitChildren(t, dir, 1)
			testserver.Delete(t, other)
			release(t, acquire(t, q))
		})
	}
}

func TestContenders(t *testing.T) {
	dir := testserver.Path(t)
	q := client(t, dir)
	_, err := q.Contenders(patient(t), mutex)
	mustBe(t, err, zk.ErrNoNode)
	dir = persistentDir(t)
	q = client(t, dir)
	got, err := q.Contenders(patient(t), mutex)
	if err != nil || got == nil || len(got) != 0 {
		t.Fatalf("where there is nobody: %v, %v; want an empty list", got, err)
	}
	ask := func(data string) queue.Request { return queue.Request{Kind: mutex, Data: []byte(data)} }
	l, err := q.Acquire(patient(t), ask("first"))
	mustBe(t, err, nil)
	second := begin(t, q, ask("second")) // of the same session
	testserver.WaitChildren(t, dir, 2)
	third := begin(t, client(t, dir), ask("third"))
	testserver.WaitChildren(t, dir, 3)
	got, err = q.Contenders(patient(t), mutex)
	if err != nil || len(got) != 3 {
		t.Fatalf("%v, %v", got, err)
	}
	for i, data := range []string{"first", "second", "third"} {
		c := got[i]
		if string(c.Data) != data || c.Sequence != int32(i) || c.Holder != (i == 0) || path.Dir(c.Path) != dir || c.Own != (i < 2) || c.HeldSince.IsZero() != (i > 0) {
			t.Errorf("contender %d is %+v (%s)", i, c, c.Data)
		}
	}
	if got[0].Path != l.Path() {
		t.Errorf("the first is %s, want %s", got[0].Path, l.Path())
	}
	second.cancel()
	release(t, l)
	release(t, third.get(t))
}

// Invalid arguments are refused before any I/O, and so is a request that would be parsed as another.
func TestBadArguments(t *testing.T) {
	_, err := queue.New(nil, "/x")
	mustBe(t, err, session.ErrInvalid)
	q, proxy, m := proxied(t, testserver.Path(t))
	for _, dir := range []string{"", "/", "x", "/x/", "/x//y", "/x/../y", "/x\x00"} {
		_, err := queue.New(m, dir)
		mustBe(t, err, session.ErrInvalid)
	}
	policy := func(queue.Node) queue.Policy { return queue.Policy{} }
	tooLarge := math.MaxInt32
	tooLarge++ // negative on 32 bits, which is refused as well
	for what, r := range map[string]queue.Request{
		"no kind":          {},
		"an empty kind":    {Kind: &queue.Kind{}},
		"no policy":        {Kind: &queue.Kind{Prefixes: []string{queue.PrefixLock}}},
		"no prefixes":      {Kind: &queue.Kind{Policy: policy}},
		"bad prefix":       {Kind: &queue.Kind{Policy: policy, Prefixes: []string{"mine"}}},
		"former prefix":    {Kind: &queue.Kind{Policy: policy, Prefixes: []string{"mine-", "unfair-"}}},
		"two policies":     {Kind: configured(&queue.Kind{Policy: policy, Prefixes: []string{"mine-"}}, "1", strict)},
		"no config":        {Kind: configured(&queue.Kind{Prefixes: []string{"mine-"}}, "", strict)},
		"config, unused":   {Kind: configured(&queue.Kind{Prefixes: []string{"mine-"}}, "1", nil)},
		"another's":        {Kind: mutex, Prefix: queue.PrefixLease},
		"negative weight":  {Kind: mutex, Weight: -1},
		"weight too large": {Kind: mutex, Weight: tooLarge},
		"name of lines":    {Kind: mutex, Name: "two\nlines"},
		"name of bytes":    {Kind: mutex, Name: "\xff"},
		"long name":        {Kind: mutex, Name: strings.Repeat("n", 201)},
		"revoking data":    {Kind: mutex, Data: []byte(queue.RevokeMessage)},
	} {
		_, err := q.Acquire(patient(t), r)
		_, tried := q.TryAcquire(patient(t), r)
		for _, err := range []error{err, tried, r.Check()} {
			if !errors.Is(err, session.ErrInvalid) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	_, err = q.Acquire(patient(t), queue.Request{Kind: mutex, Data: make([]byte, 1<<20)})
	mustBe(t, err, session.ErrInvalid)
	for _, kind := range []*queue.Kind{nil, {}, {Prefixes: []string{"odd"}, Policy: policy}} {
		_, err := q.Contenders(patient(t), kind)
		mustBe(t, err, session.ErrInvalid)
	}
	if n := proxy.Count(inDir(q.Path())); n > 0 {
		t.Errorf("%d requests were sent", n)
	}
	good := queue.Request{Kind: queue.Writer(), Prefix: queue.PrefixRead, Weight: math.MaxInt32, Data: []byte("web-3"), Name: "prices"}
	mustBe(t, good.Check(), nil)
	l, err := q.Acquire(patient(t), good)
	mustBe(t, err, nil)
	if n, _ := queue.ParseNode(path.Base(l.Path())); n.Weight != math.MaxInt32 {
		t.Errorf("read back as %d", n.Weight)
	}
	release(t, l)
}

// The holder leaves while Contenders reads the nodes that it has listed. The next one holds then.
func TestContendersHolderLeaves(t *testing.T) {
	dir := testserver.Path(t)
	first, err := client(t, dir).Acquire(patient(t), queue.Request{Kind: mutex})
	mustBe(t, err, nil)
	second := begin(t, client(t, dir), queue.Request{Kind: mutex})
	testserver.WaitChildren(t, dir, 2)
	q := client(t, dir, session.WithTrace(session.Trace{
		Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
			if r.Op == "getData" && r.Path == first.Path() {
				release(t, first)
			}
			return ctx, nil
		},
	}))
	all, err := q.Contenders(patient(t), mutex)
	if err != nil || len(all) != 1 || !all[0].Holder {
		t.Errorf("%+v, %v: want one contender, which holds", all, err)
	}
	release(t, second.get(t))
}

// Nodes with a further prefix of a kind count as its contenders, and nodes with a prefix that it does not have do not.
func TestFurtherPrefixes(t *testing.T) {
	dir := persistentDir(t)
	put(t, dir, "__lock__-unused", "", 0)
	theirs := put(t, dir, "f81d4fae-theirs_", "", zk.FlagSequence)
	release(t, acquire(t, client(t, dir))) // a mutex that does not know them
	kind := queue.Mutex()
	kind.Prefixes = append(kind.Prefixes, "mine-", "theirs_")
	q, r := client(t, dir), queue.Request{Kind: kind}
	_, err := q.TryAcquire(patient(t), r)
	mustBe(t, err, queue.ErrBusy)
	all, err := q.Contenders(patient(t), kind)
	if err != nil || len(all) != 1 || all[0].Path != theirs || !all[0].Holder {
		t.Errorf("contenders: %+v, %v", all, err)
	}
	waits := begin(t, q, r)
	testserver.WaitChildren(t, dir, 3)
	waits.waits(t, "one of theirs holds")
	testserver.Delete(t, theirs)
	l := waits.get(t)
	if !strings.Contains(l.Path(), "-"+queue.PrefixLock) {
		t.Errorf("our node is %s", l.Path())
	}
	release(t, l)
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
func configured(k *queue.Kind, config string,
	policy func(queue.Node, queue.Config) (queue.Policy, error)) *queue.Kind {
	k.Configuration = &queue.Configuration{Config: []byte(config), Policy: policy}
	return k
}

// strict is a policy under every configuration.
func strict(queue.Node, queue.Config) (queue.Policy, error) {
	return queue.Policy{}, nil
}

// The directory vanishes between the listing and the reading of its configuration.
func TestContendersDirectoryVanishes(t *testing.T) {
	dir := persistentDir(t)
	l, err := client(t, dir).Acquire(patient(t), queue.Request{Kind: limited("1")})
	mustBe(t, err, nil)
	q := client(t, dir, session.WithTrace(session.Trace{
		Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
			if r.Op == "getData" && r.Path == dir {
				release(t, l)
				testserver.Delete(t, dir)
			}
			return ctx, nil
		},
	}))
	if all, err := q.Contenders(patient(t), limited("1")); err != nil || all == nil || len(all) > 0 {
		t.Errorf("%v, %v", all, err)
	}
}
