package interop_test

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
)

func TestMutex(t *testing.T) {
	for name, clients := range map[string][]client{
		"all":                           {{"go", "mutex"}, {"go", "zk.Lock"}, {"java", "mutex"}, {"python", "mutex"}},
		"python, from one to the other": {{"go", "mutex"}, {"python", "kazoo-mutex"}, {"python", "mutex-too"}},
	} {
		t.Run(name, func(t *testing.T) {
			contest{clients: inTurn(clients...), first: 1, visits: longtest.Pick(5, 20)}.run(t)
		})
	}
}

func TestSemaphore(t *testing.T) {
	longtest.Only(t)
	clients := inTurn(client{"go", "semaphore"}, client{"java", "semaphore"}, client{"python", "semaphore"})
	contest{clients: clients, first: 3, leases: 3, visits: 10}.run(t)
}
