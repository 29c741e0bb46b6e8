package interop_test

import "testing"

func TestSemaphore(t *testing.T) {
	for name, clients := range map[string][]client{
		"java and python": {{"java", "semaphore"}, {"python", "semaphore"}},
	} {
		t.Run(name, contest{clients: inTurn(clients...), first: 3, leases: 3, visits: 10}.run)
	}
}
