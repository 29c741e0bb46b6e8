package election_test

import (
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// A better candidate that loses its session in the middle of its requests waits for the delay anew: its old place
// gives it no right to take over from its new one.
func TestRankLostWhileAsking(t *testing.T) {
	inParty(t, func(t *testing.T, p *party) {
		p.join("low", ranked(0))
		high := p.join("high", ranked(1), election.WithTakeoverDelay(time.Minute))
		asks := p.server.HoldRequest(zktest.On(zktest.OpSetData, dir))
		pass(time.Minute)
		<-asks.Hit()
		must(t, p.server.Expire(t.Context(), testserver.Session(t, high.m).ID()))
		pass(time.Minute - time.Second)
		p.want("low")
		pass(5 * time.Second)
		p.want("low", "high")
	})
}
