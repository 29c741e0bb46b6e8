package zktest

import (
	"testing"
	"time"
)

// If the servers' clocks run twice as fast as the client's, a session lasts half as long as its client was
// told, and at most half a tick more. Leaders ping twice as often.
func TestClockRate(t *testing.T) {
	onStage(t, func(s *stage) {
		c := s.call("client", 0, nil, 10*time.Second)
		s.passTo(2 * time.Second)
		c.does(ping())
		before := s.expiry(c)
		s.pass(tickOnStage / 2) // two lists
		if after := s.expiry(c); after <= before {
			t.Errorf("within half a tick no list has put off the end from %v", before)
		}
		end := s.expiry(c)
		s.passTo(end - time.Millisecond)
		s.expiry(c)
		s.pass(time.Millisecond)
		c.connected(false)
		if least, most := 7*time.Second, 7*time.Second+tickOnStage; end < least || end > most {
			t.Errorf("a session that was heard of between 2s and 3s ended after %v, want %v to %v", end, least, most)
		}
	}, ClockRate(2))
}
