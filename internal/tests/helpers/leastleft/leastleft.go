// Package leastleft measures how close a session came to its end.
package leastleft

import (
	"time"

	"github.com/turnstile-go/turnstile/session"
)

// every is how often the session is asked.
const every = 5 * time.Millisecond

// Watch asks a session again and again how much time it has left. The function that it returns ends that, and returns the
// least that the session had. It is called once.
func Watch(s *session.Session) (stop func() time.Duration) {
	end, least := make(chan struct{}), make(chan time.Duration)
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		left := s.Remaining()
		for {
			select {
			case <-end:
				least <- left
				return
			case <-tick.C:
				left = min(left, s.Remaining())
			}
		}
	}()
	return func() time.Duration {
		close(end)
		return <-least
	}
}
