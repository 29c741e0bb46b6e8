package main

import (
	"fmt"
	"runtime"
	"strings"
)

// method says how it was measured: what a reader needs to judge the numbers.
const method = `All ran on one machine in one run, by turns: each round measures every rival once, one after
the other, each for half a second or longer, and each is the first in turn. A number is the median of the rounds; behind it stands how many times as good ours
is, which is the median of the ratios of each round, so more than 1 is in our favour.

- *1 ms each way* is a proxy that delays every frame, between the clients and the same server,
  in a process of its own.
  *counted* is loopback through what counts requests and bytes. The servers do not sync their
  logs to disk.
- A session is a connection of its own, as another process would have; each worker has a lock
  object and a thread or goroutine of its own. The code around the locks is the same in each
  language. What is measured is measured in the process that locks.
- *uncontended* is the time of a lock and its release, and *hand-overs* how many of those
  there are in a second when all sessions always want the lock. *Release to the next holder*
  is the time from before the release until one who had waited runs.
- The *limit* is what no lock on ZooKeeper can do without, by plain requests: two writes, one
  after the other, for a lock and its release; one write for a hand-over; and for many locks
  two writes each, with 64 under way.
- The locks are used as their documentation shows: ` + "`zklock`, `rwlock`, `semaphore`" + `;
  go-zookeeper's ` + "`zk.Lock`" + `; Curator's InterProcessMutex, InterProcessReadWriteLock and
  InterProcessSemaphoreV2, in a JVM with its default options, warmed up by thousands of locks;
  kazoo's Lock and Semaphore; and etcd's ` + "`concurrency.Mutex`" + `, on
  another kind of server, with its data in memory, for orientation. All sessions have a
  timeout of 30 s.
- Memory is heap and stacks in Go, the heap in Java, where each waiter needs a thread besides,
  and the resident set in Python.
`

// pageText is all there is to say about a run.
func pageText(all results, rivals []rival, s *stage, o options) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Made by `make bench`, with %s. %d rounds.\n\n", machine(s, rivals), o.size.rounds)
	if o.page != "" {
		b.WriteString("![speed beside turnstile's](performance.png)\n\n")
	}
	b.WriteString(method)
	parts := []string{table(all, o.rivals), blanks(all, rivals), targetTable(all.targets())}
	for _, part := range parts {
		if part != "" {
			b.WriteString("\n" + part)
		}
	}
	return b.String()
}

func machine(s *stage, rivals []rival) string {
	words := []string{
		fmt.Sprintf("%d cores for servers and clients together, %s/%s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH),
		runtime.Version(),
		"ZooKeeper " + s.version,
	}
	for _, v := range rivals {
		if v.Name() != turnstileName {
			words = append(words, v.Version())
		}
	}
	return strings.Join(words, "; ")
}
