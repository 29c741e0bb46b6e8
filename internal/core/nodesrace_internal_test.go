package core

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/zktest"
)

// A node that was removed and made again at once must be counted. Otherwise Err and Remaining go
// by Clock.heard although the session has a node.
func TestRemadeNodeIsCounted(t *testing.T) {
	longtest.Only(t)
	server := zktest.Start(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	m, err := connect(ctx, "h:1", WithDialer(server.Dialer()))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s, err := m.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	bad := 0
	const n = 3000
	for range n {
		for {
			_, err := s.Create(ctx, "/n", nil, Ephemeral)
			if err == nil {
				break
			}
			if !errors.Is(err, zk.ErrNodeExists) {
				t.Fatal(err)
			}
		}
		time.Sleep(50 * time.Microsecond) //nolint:forbidigo // leaves time for the race, and waits for nothing
		if stat, err := s.Exists(ctx, "/n"); err != nil || stat == nil {
			t.Fatal(stat, err)
		}
		if !s.room.Has() {
			bad++
		}
		s.Remove(ctx, "/n")
	}
	t.Logf("%d of %d", bad, n)
	if bad > 0 {
		t.Errorf("the session owns a node and does not know, %d times of %d", bad, n)
	}
}
