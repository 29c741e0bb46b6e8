package queue_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

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

// The first contender sets the configuration of the directory, and the others go by it.
func TestConfig(t *testing.T) {
	dir := testserver.Path(t)
	q := client(t, dir)
	first, err := q.Acquire(patient(t), queue.Request{Kind: limited("2")})
	mustBe(t, err, nil)
	second, err := q.Acquire(patient(t), queue.Request{Kind: limited("1")})
	mustBe(t, err, nil)
	_, err = q.TryAcquire(patient(t), queue.Request{Kind: limited("5")})
	mustBe(t, err, queue.ErrBusy)
	all, err := q.Contenders(patient(t), limited("7"))
	if err != nil || len(all) != 2 || !all[0].Holder || !all[1].Holder {
		t.Errorf("contenders %+v, %v", all, err)
	}
	release(t, first)
	release(t, second)
}

// Waiters decide again when the configuration changes. More of them go if it allows more. If it is
// invalid, they get the error. If it allows less, none goes by the old one.
func TestConfigChanges(t *testing.T) {
	dir := persistentDir(t)
	q := client(t, dir)
	set := func(to string) {
		t.Helper()
		configure(t, dir, to)
	}
	var held []*queue.Lease
	for range 2 {
		l, err := client(t, dir).Acquire(patient(t), queue.Request{Kind: limited("2")})
		mustBe(t, err, nil)
		held = append(held, l)
	}
	third := begin(t, client(t, dir), queue.Request{Kind: limited("2")})
	testserver.WaitChildren(t, dir, 3)
	fourth := begin(t, client(t, dir), queue.Request{Kind: limited("2")})
	testserver.WaitChildren(t, dir, 4)
	set("1")
	release(t, held[0]) // by 2 the third could go now
	_, err := q.TryAcquire(patient(t), queue.Request{Kind: limited("2")})
	mustBe(t, err, queue.ErrBusy)
	third.waits(t, "the limit is one")
	set("2")
	held = append(held[1:], third.get(t))
	set("nonsense")
	fourth.wait(t)
	mustBe(t, fourth.err, queue.ErrConflict)
	for _, l := range held {
		release(t, l)
	}
	testserver.WaitChildren(t, dir, 0)
}

// configure sets the data of a directory, as another process would.
func configure(t *testing.T, dir, data string) {
	t.Helper()
	if _, err := testserver.Admin(t).Set(dir, []byte(data), -1); err != nil {
		t.Fatal(err)
	}
}

// The limit is lowered while the configuration is read, and the directory is listed after that, when
// one of the holders has left. By the old limit there would be room.
func TestConfigOlderThanListing(t *testing.T) {
	dir := persistentDir(t)
	var held []*queue.Lease
	for range 2 {
		l, err := client(t, dir).Acquire(patient(t), queue.Request{Kind: limited("2")})
		mustBe(t, err, nil)
		held = append(held, l)
	}
	configRead, watching := make(chan struct{}), make(chan struct{})
	var once sync.Once
	late, proxy, _ := proxied(t, dir, session.WithTrace(session.Trace{
		Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
			return ctx, func(error) {
				if r.Op == "getData" && r.Path == dir {
					once.Do(func() { close(configRead) })
				}
			}
		},
		Watch: func(ctx context.Context, _ session.WatchInfo) (context.Context, func(error)) {
			close(watching)
			return ctx, nil
		},
	}))
	list := proxy.HoldRequest(ofContenders(dir, zktest.OpGetChildren2))
	third := begin(t, late, queue.Request{Kind: limited("2")})
	await(t, configRead, "the configuration to be read")
	if _, err := testserver.Admin(t).Set(dir, []byte("1"), -1); err != nil {
		t.Fatal(err)
	}
	release(t, held[0])
	list.Release()
	select {
	case <-watching:
	case <-third.done:
		t.Fatalf("granted (%v), though the limit is one and one holds", third.err)
	}
	release(t, held[1])
	release(t, third.get(t))
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

// All nodes ahead are watched. When one of them leaves and that is not enough, no request is sent.
func TestFramesNotEnough(t *testing.T) {
	dir := persistentDir(t)
	var held []*queue.Lease
	for range 2 {
		l, err := client(t, dir).Acquire(patient(t), queue.Request{Kind: limited("2")})
		mustBe(t, err, nil)
		held = append(held, l)
	}
	next := begin(t, client(t, dir), queue.Request{Kind: limited("2")})
	testserver.WaitChildren(t, dir, 3)
	watching := make(chan struct{}, 10)
	q, proxy, _ := proxied(t, dir, watchHook(watching))
	last := begin(t, q, queue.Request{Kind: limited("2")})
	await(t, watching, "the last to watch the three")
	event := proxy.HoldReply(zktest.On(zktest.OpNotification, held[1].Path()))
	proxy.ResetRequests()
	release(t, held[1])
	await(t, event.Hit(), "the last to be told")
	event.Release()
	l := next.get(t)
	release(t, l)
	second := last.get(t) // has heard of both
	if n := proxy.Count(ofContenders(dir, zktest.OpGetChildren2)); n > 0 {
		t.Errorf("listed %d times", n)
	}
	release(t, second)
	release(t, held[0])
}
