package size

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// keyOptions are those of the Keyed of each process in TestKeys.
var keyOptions = [3][]zklock.Option{
	{}, {zklock.WithLocalHandover(5)}, {zklock.WithLocalHandover(5), zklock.WithLazyRelease(time.Second)},
}

// Three processes take the locks of thousands of keys, in all ways and for a minute. Goroutines of two of them share
// places. Nothing stays: no node, no directory and no watch on the server, and no goroutine and no memory in the processes.
func TestKeys(t *testing.T) {
	e := server(t, zktest.ContainerCheck(time.Second)) // ZooKeeper's own default is a minute
	n, atLeast := longtest.Pick(500, 10_000), time.Duration(longtest.Pick(0, 60))*time.Second
	c, held := rival(t, e.Addr(0)), t.TempDir()
	var users [len(keyOptions)]*keyProcess
	for i := range users {
		users[i] = startKeys(t, i, e.ConnectString(), held)
	}
	all := func(j keyJob) (reports [len(users)]keyReport) {
		var at sync.WaitGroup
		for i, u := range users {
			at.Go(func() { reports[i] = u.do(j) })
		}
		at.Wait()
		return reports
	}
	use := func(j keyJob) {
		began := time.Now()
		for i, r := range all(j) {
			t.Logf("%s, process %d: %d keys, %d uses, %d of them of a place that was handed on or kept; at least %v of the session was left",
				j.Name, i, j.Keys, r.Uses, r.Shared, r.Least.Round(time.Millisecond))
			if (r.Shared > 0) != (len(keyOptions[i]) > 0) {
				t.Errorf("process %d, with %d options: %d places were handed on or kept", i, len(keyOptions[i]), r.Shared)
			}
		}
		t.Logf("%s: %v", j.Name, time.Since(began).Round(time.Millisecond))
		// A call that ends between the creates of a directory and of its node leaves a directory that has never had a child.
		// Servers before 3.10 remove it only after the next use. So all keys are used once more, to the end.
		users[0].do(keyJob{Name: j.Name, Keys: j.Keys, Once: true})
		gone(t, c)
	}
	left := func() (l leftovers) {
		for i, r := range all(keyJob{}) {
			l.Processes[i] = r.inUse
		}
		l.Nodes, l.Ephemerals = metric(t.Context(), t, e, "zk_znode_count"), metric(t.Context(), t, e, "zk_ephemerals_count")
		l.Watches = metric(t.Context(), t, e, "zk_watch_count")
		return l
	}
	use(keyJob{Name: "receipt", Keys: min(n, 2000)}) // takes what stays for good: room for as many at a time
	before := left()
	use(keyJob{Name: "invoice", Keys: n, AtLeast: atLeast})
	var after leftovers
	defer func() { t.Logf("before: %+v; after: %+v", before, after) }()
	zktest.Eventually(t, testserver.Patience, "all to be as before", func() bool {
		after = left()
		return t.Failed() || !after.more(before)
	})
	for _, u := range users {
		u.end()
	}
}

// leftovers is what may stay of keys that were used.
type leftovers struct {
	Nodes, Ephemerals, Watches int // on the server
	Processes                  [len(keyOptions)]inUse
}

// inUse is what a process has in use.
type inUse struct{ Goroutines, Heap int }

func (l leftovers) more(than leftovers) bool {
	for i, p := range l.Processes {
		was := than.Processes[i]
		if p.Goroutines > was.Goroutines+4 || p.Heap > was.Heap+1<<20 { // a session keeps some goroutines for its next requests
			return true
		}
	}
	return l.Nodes > than.Nodes || l.Ephemerals > than.Ephemerals || l.Watches > than.Watches
}

func heapInUse() int {
	runtime.GC()
	runtime.GC() // for objects that the first has only finalized
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int(s.HeapAlloc)
}

// gone waits until the server has removed the directories of all keys.
func gone(t *testing.T, c *zk.Conn) {
	t.Helper()
	zktest.Eventually(t, patience, "no directory of a key", func() bool {
		there, _, err := c.Exists(keysDir)
		return err == nil && !there
	})
}

func (j keyJob) key(i int) string { return fmt.Sprint(j.Name, "/", i) }
