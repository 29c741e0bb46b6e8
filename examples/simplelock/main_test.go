package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/exampletest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

// Each waiter of the simple lock sends a create with its listing when the lock is free, and all but one set a watch. In the
// queue, the number of waiters does not matter.
func TestHerd(t *testing.T) {
	var out bytes.Buffer
	expect.NoError(t, run(t.Context(), &out, exampletest.Server(t)))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")[2:]
	if len(lines) != 6 {
		t.Fatalf("it says\n%s", out.String())
	}
	for _, line := range lines {
		var waiters, simple, queue int
		expect.NoError(t, expect.Err(fmt.Sscan(line, &waiters, &simple, &queue)))
		if simple < 3*waiters || queue > 5 {
			t.Errorf("%d waiters: %d requests for the simple lock, %d in the queue", waiters, simple, queue)
		}
	}
	for _, dir := range []string{simpleDir, queuePath} {
		testserver.WaitChildren(t, dir, 0)
	}
}

// A client whose session ends loses the lock, and gets it again in its next session.
func TestLoss(t *testing.T) {
	longtest.InCI(t)
	p := testserver.Proxy(t)
	m := testserver.Connect(t, p.Addr())
	l := &simpleLock{m: m, dir: testserver.Path(t), waits: func(bool) {}}
	for range 2 {
		expect.NoError(t, l.Lock(t.Context()))
		expect.NoError(t, l.Err())
		expect.NoError(t, p.Expire(t.Context(), l.s.ID()))
		zktest.Eventually(t, testserver.Patience, "the loss", func() bool { return l.Err() != nil })
	}
}

func TestEnds(t *testing.T) { exampletest.Ends(t, simpleDir, exampletest.ZK) }
