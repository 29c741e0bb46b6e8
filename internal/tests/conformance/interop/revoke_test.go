package interop_test

import (
	"context"
	"errors"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zklock"
)

// Curator's Revoker reaches our holders. Revoke reaches Curator's holders, of which nobody
// can know whether they listen.
func TestRevoke(t *testing.T) {
	newSite(t, 1) // skips the test where there is no real server
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	java := startDialog(t, "CuratorRevoker", testserver.Server(t).Addr(0))
	m, dir := testserver.Connect(t, testserver.Server(t).Addr(0)), testserver.Path(t)

	mx, err := zklock.New(m, dir+"/a")
	must(t, err)
	ours, err := mx.Acquire(ctx)
	must(t, err)
	java.answers(t, "revoke "+ours.Path(), "done")
	select {
	case <-ours.Revoked():
	case <-ctx.Done():
		t.Fatal("our holder was not asked")
	}
	must(t, ours.Release(ctx))
	err = mx.Do(ctx, func(work context.Context) error {
		lease, _ := queue.LeaseFrom(work)
		java.answers(t, "revoke "+lease.Path(), "done")
		<-work.Done()
		return work.Err()
	})
	if !errors.Is(err, queue.ErrRevoked) {
		t.Errorf("Do returns %v", err)
	}

	theirs, err := zklock.New(m, dir+"/b")
	must(t, err)
	java.answers(t, "hold "+dir+"/b", "done")
	all, err := theirs.Contenders(ctx)
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v, want one contender", all, err)
	}
	must(t, zklock.Revoke(ctx, m, all[0].Path))
	java.says(t, "asked")
	java.answers(t, "release", "done")
}
