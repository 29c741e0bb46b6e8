package session

import (
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/clock"
)

// TestWhyOut tells a process that stood still from one whose servers did not answer. (The test of a process that is really
// stopped is that of package zklock.)
func TestWhyOut(t *testing.T) {
	const timeout = 10 * time.Second
	for late, want := range map[time.Duration]string{
		0:               "no answer through the leader",
		timeout/4 - 1e9: "no answer through the leader",
		timeout/4 + 1e9: "this process stood still for 3.5",
	} {
		s := &Session{lookAt: clock.Now().Add(-late)}
		s.greeting.TimeoutMillis = int32(timeout.Milliseconds())
		if got := s.whyOut(); !strings.HasPrefix(got.Error(), want) {
			t.Errorf("late by %v: %v", late, got)
		}
	}
}
