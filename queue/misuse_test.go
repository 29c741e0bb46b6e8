package queue_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/misusetest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// A nil context, and an object that was not made by its constructor, panic with a message, before
// anything is sent or changed.
func TestMisuse(t *testing.T) {
	q, proxy, _ := proxied(t, testserver.Path(t))
	l := acquire(t, q)
	if _, err := l.Token(patient(t)); err != nil { // the last request before the misuse
		t.Fatal(err)
	}
	local, err := q.Local(ask, 1)
	if err != nil {
		t.Fatal(err)
	}
	proxy.ResetRequests()
	misusetest.Check(t, misusetest.Package{
		Name: "queue",
		Objects: []misusetest.Object{
			{Zero: &queue.Queue{}, Made: q},
			{Zero: &queue.Lease{}, Made: l},
			{Zero: &queue.Local{}, Made: local},
		},
		Values: []any{&queue.Kind{}, queue.Request{}},
		Funcs: map[string]func(context.Context){
			"LeaseFrom":   func(ctx context.Context) { queue.LeaseFrom(ctx) },
			"WithLabel":   func(ctx context.Context) { queue.WithLabel(ctx, "request 42") },
			"WithMaxWait": func(ctx context.Context) { queue.WithMaxWait(ctx, time.Second) },
			"WithOwner":   func(ctx context.Context) { queue.WithOwner(ctx) },
		},
	})
	if n := proxy.Count(inDir(q.Path())); n > 0 || l.Err() != nil {
		t.Errorf("%d requests, and the lease says %v", n, l.Err())
	}
	release(t, l)
}

// Zero values of arguments are an error.
func TestZeroRequest(t *testing.T) {
	q := client(t, testserver.Path(t))
	wantInvalid := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := q.Acquire(patient(t), queue.Request{})
	wantInvalid("Acquire", err)
	_, err = q.TryAcquire(patient(t), queue.Request{})
	wantInvalid("TryAcquire", err)
	_, err = q.Local(queue.Request{}, 1)
	wantInvalid("Local", err)
	_, err = q.Acquire(patient(t), queue.Request{Kind: &queue.Kind{}})
	wantInvalid("Acquire of no kind", err)
	wantInvalid("Reconfigure", q.Reconfigure(patient(t), "pin", false, nil))
	for _, pin := range []string{"", "a/b", "..", "x\x00", "lock-0000000001"} {
		err := q.Reconfigure(patient(t), pin, true, func(queue.Config) ([]byte, error) { return []byte("1"), nil })
		wantInvalid(fmt.Sprintf("Reconfigure with the pin %q", pin), err)
	}
	l := acquire(t, q)
	_, err = l.Beside(patient(t), queue.Request{})
	wantInvalid("Beside", err)
	release(t, l)
}
