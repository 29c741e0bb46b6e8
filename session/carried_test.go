package session_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/session"
)

// Requests that wait when the connection is lost are sent over the next one, without a look for what became of them. That
// includes requests that never go together with others.
func TestBatchReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBatching(t, 3)
		old, err := b.s.Create(t.Context(), "/0/n-", nil, session.EphemeralSequential)
		must(t, err)
		b.hold()
		all := []*begun{b.create(t.Context(), "/0/n-"), b.create(t.Context(), "/1/n-")}
		ctx, cancel := context.WithCancel(t.Context())
		late := b.create(ctx, "/2/n-")
		written := make(chan error, 3)
		go func() { _, err := b.s.Set(t.Context(), "/1", []byte("set"), -1); written <- err }()
		go func() { _, err := b.s.Multi(t.Context(), &zk.SetDataRequest{Path: "/2", Version: -1}); written <- err }()
		go func() { written <- b.s.Delete(t.Context(), old, -1) }()
		synctest.Wait()
		b.Refuse(true)
		b.Disconnect()
		time.Sleep(time.Second) //nolint:forbidigo // in a bubble
		cancel()
		b.ResetRequests()
		b.Refuse(false)
		for _, c := range all {
			_, err := b.created(c)
			must(t, err)
		}
		_, err = b.created(late)
		wantErr(t, "create", err, context.Canceled)
		for range cap(written) {
			must(t, <-written)
		}
		if names := b.children("/0"); !slices.Equal(names, []string{"n-0000000001"}) {
			t.Errorf("/0 has %v", names)
		}
		if names := b.children("/2"); len(names) > 0 {
			t.Errorf("/2 has %v", names)
		}
		if n := b.searches(); n > 0 {
			t.Errorf("%d requests look for what became of those that were not sent", n)
		}
	})
}

// The session ends while requests wait for the next connection.
func TestBatchSessionEndsWithoutConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBatching(t, 2)
		b.hold()
		waits := []*begun{b.create(t.Context(), "/0/n-"), b.create(t.Context(), "/1/n-")}
		b.Refuse(true)
		b.Disconnect()
		for _, c := range waits {
			_, err := b.created(c)
			wantErr(t, "create", err, session.ErrLost)
		}
		b.Refuse(false)
	})
}
