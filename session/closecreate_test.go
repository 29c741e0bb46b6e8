package session_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
)

// The manager is closed while containers are created. Their answers may come after that. The race detector must not
// complain.
func TestCloseWhileContainersAreCreated(t *testing.T) {
	dir := testserver.Path(t)
	for round := 0; round < 20; round += longtest.Pick(4, 1) {
		m := testserver.Connect(t, testserver.Server(t).Addr(0))
		s := testserver.Session(t, m)
		made := make(chan struct{})
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for n := 0; ; n++ {
					node := fmt.Sprintf("%s-%d-%d-%d", dir, round, i, n)
					if _, err := s.Create(context.Background(), node, nil, session.Container); err != nil {
						return
					}
					if err := s.Delete(context.Background(), node, -1); err != nil {
						return
					}
					select {
					case made <- struct{}{}:
					default:
					}
				}
			})
		}
		for range 10 + 3*round {
			<-made
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		all.Wait()
	}
}
