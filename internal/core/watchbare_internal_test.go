package core

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/outbox"
)

// A setWatches, which has several callers, is never taken for a request that the server refuses for its length: the
// callers would fail for each other.
func TestSetWatchesIsNotSuspicious(t *testing.T) {
	const overhead = 1 << 10 // lengths and heads
	if watchedBytes+overhead >= outbox.SuspiciousLength {
		t.Errorf("setWatches can have %d bytes; from %d on a request is suspicious", watchedBytes+overhead, outbox.SuspiciousLength)
	}
}
