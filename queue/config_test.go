package queue_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/turnstile-go/turnstile/internal/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zktest"
)

// limited is a kind whose directory says how many may hold at a time.
func limited(limit string) *queue.Kind {
	return &queue.Kind{
		Name:     "limited",
		Prefixes: []string{queue.PrefixLease},
		Config:   []byte(limit),
		Configured: func(_ queue.Node, config []byte) (queue.Policy, error) {
			n, err := strconv.Atoi(string(config))
			if err != nil {
				return queue.Policy{}, fmt.Errorf("%w: %q", queue.ErrConflict, config)
			}
			return queue.Policy{Slack: n - 1}, nil
		},
	}
}

// The directory is given its configuration by the first, and the others go by that.
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

// Those who wait decide anew when the configuration changes: more are let in, an error is
// told, and after less nobody is let in by the old one.
func TestReconfigure(t *testing.T) {
	dir := persistentDir(t)
	q := client(t, dir)
	set := func(to string) {
		t.Helper()
		mustBe(t, q.Reconfigure(patient(t), func([]byte) ([]byte, error) { return []byte(to), nil }), nil)
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

// Reconfigure makes the directory if need be, and returns the error of its function.
func TestReconfigureMakesDirectory(t *testing.T) {
	dir := testserver.Path(t)
	q := client(t, dir)
	refusal := errors.New("refused")
	mustBe(t, q.Reconfigure(patient(t), func([]byte) ([]byte, error) { return nil, refusal }), refusal)
	mustBe(t, q.Reconfigure(patient(t), func(old []byte) ([]byte, error) {
		if len(old) > 0 {
			t.Errorf("old data %q", old)
		}
		return []byte("3"), nil
	}), nil)
	if data, _, err := testserver.Admin(t).Get(dir); err != nil || string(data) != "3" {
		t.Errorf("%q, %v", data, err)
	}
}

// Its reply is lost: the change is made all the same, and once is enough.
func TestReconfigureReplyLost(t *testing.T) {
	dir := persistentDir(t)
	q, proxy, _ := proxied(t, dir)
	fault := proxy.CutAfterCommit(zktest.On(zktest.OpSetData, dir))
	mustBe(t, q.Reconfigure(patient(t), func([]byte) ([]byte, error) { return []byte("3"), nil }), nil)
	await(t, fault.Hit(), "the fault")
	if data, _, err := testserver.Admin(t).Get(dir); err != nil || string(data) != "3" {
		t.Errorf("%q, %v", data, err)
	}
}
