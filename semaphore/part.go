package semaphore

import (
	"github.com/turnstile-go/turnstile/internal/queueplumbing"
	"github.com/turnstile-go/turnstile/queue"
)

func init() {
	// In Curator's layout an acquisition takes two nodes, one after the other.
	queueplumbing.SetPart(func(s *Semaphore) (queueplumbing.Part, bool) {
		r := queue.Request{Kind: s.kind, Weight: 1, Data: s.data, Revoked: s.revoked}
		return queueplumbing.Part{Queue: s.q, Request: r}, !s.curator
	})
}
