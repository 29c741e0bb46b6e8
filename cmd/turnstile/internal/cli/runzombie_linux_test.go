package cli

import (
	"syscall"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// The guard is the parent of processes whose own parent has ended. It waits for them when they end.
func TestRunReaps(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	p := start(t, server(t), "run", testserver.Path(t), "--", "sh", "-c",
		"for i in 1 2 3 4 5 6 7 8 9; do (true &); (setsid true &); done; "+j.once("A")+"; exec sleep 1000")
	j.await(t, "A")
	guard := p.awaitChild(t, guardName)
	zktest.Eventually(t, patience, "the end of all dead processes", func() bool {
		for _, c := range childrenOf(guard) {
			if c.state == "Z" {
				return false
			}
		}
		return true
	})
	p.signal(t, syscall.SIGTERM)
	p.wait(t, 143)
}
