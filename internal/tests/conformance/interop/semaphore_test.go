package interop_test

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
)

func TestSemaphore(t *testing.T) {
	longtest.Only(t)
	for name, clients := range map[string][]client{
		"go and java":         {{"go", "semaphore"}, {"java", "semaphore"}},
		"go, java and python": {{"go", "semaphore"}, {"java", "semaphore"}, {"python", "semaphore"}},
	} {
		t.Run(name, contest{clients: inTurn(clients...), first: 3, leases: 3, visits: 10}.run)
	}
}
