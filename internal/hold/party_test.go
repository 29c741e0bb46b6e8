package hold

import (
	"context"
	"runtime"
	"testing"
	"weak"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// While a party waits for a lock, it does not keep what the acquisitions of those before it have read: listings, which can
// be long.
func TestPartyKeepsNothingTaken(t *testing.T) {
	dir := testserver.Path(t)
	m := testserver.Connect(t, testserver.Server(t).Addr(0))
	var locks []*Lock
	for _, name := range []string{"-a", "-b"} {
		q, err := place.New((*core.Manager)(m), dir+name)
		expect.NoError(t, err)
		locks = append(locks, &Lock{Queue: q, Request: place.Request{Kind: mutexKind}})
	}
	ctx, cancel := context.WithCancel(expect.Patient(t))
	defer cancel()
	p, err := Together(ctx, locks, false)
	expect.NoError(t, err)
	taken := weak.Make(p.members[0].Acquisition)
	one, err := p.Next()
	expect.NoError(t, err)
	zktest.Eventually(t, testserver.Patience, "the end of an acquisition", func() bool {
		runtime.GC()
		return taken.Value() == nil
	})
	expect.NoError(t, p.Leave(ctx, nil))
	giveBack(t, one)
}
