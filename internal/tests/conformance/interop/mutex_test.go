package interop_test

import (
	"slices"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
)

func TestMutex(t *testing.T) {
	quick := []string{"these and zk.Lock", "python, from one to the other"} // they have the clients of the others
	for name, clients := range map[string][]client{
		"go and java":                   {{"go", "mutex"}, {"java", "mutex"}},
		"go, java and python":           {{"go", "mutex"}, {"java", "mutex"}, {"python", "mutex"}},
		"these and zk.Lock":             {{"go", "mutex"}, {"go", "zk.Lock"}, {"java", "mutex"}, {"python", "mutex"}},
		"go and python, as shipped":     {{"go", "mutex"}, {"python", "kazoo-mutex"}},
		"python, from one to the other": {{"go", "mutex"}, {"python", "kazoo-mutex"}, {"python", "mutex-too"}},
	} {
		t.Run(name, func(t *testing.T) {
			if !slices.Contains(quick, name) {
				longtest.Only(t)
			}
			contest{clients: inTurn(clients...), first: 1, visits: longtest.Pick(5, 20)}.run(t)
		})
	}
}

func TestSemaphore(t *testing.T) {
	longtest.Only(t)
	for name, clients := range map[string][]client{
		"go and java":         {{"go", "semaphore"}, {"java", "semaphore"}},
		"go, java and python": {{"go", "semaphore"}, {"java", "semaphore"}, {"python", "semaphore"}},
	} {
		t.Run(name, contest{clients: inTurn(clients...), first: 3, leases: 3, visits: 10}.run)
	}
}
