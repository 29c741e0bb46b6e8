package interop_test

import "testing"

func TestMutex(t *testing.T) {
	for name, clients := range map[string][]client{
		"go and java":                   {{"go", "mutex"}, {"java", "mutex"}},
		"go, java and python":           {{"go", "mutex"}, {"java", "mutex"}, {"python", "mutex"}},
		"these and zk.Lock":             {{"go", "mutex"}, {"go", "zk.Lock"}, {"java", "mutex"}, {"python", "mutex"}},
		"go and python, as shipped":     {{"go", "mutex"}, {"python", "kazoo-mutex"}},
		"python, from one to the other": {{"go", "mutex"}, {"python", "kazoo-mutex"}, {"python", "mutex-too"}},
	} {
		t.Run(name, contest{clients: inTurn(clients...), first: 1, visits: 20}.run)
	}
}
