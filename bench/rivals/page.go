package main

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// method says how the numbers were measured.
const method = `All ran on one machine, in one run. Each round measures every rival once, one after the other, each
for half a second or longer, and the rivals take turns in going first. A number is the median of the
rounds. Behind it, in brackets, stands how many times as good turnstile is: the median of the ratios
of each round. So more than 1 is in turnstile's favour.

- *1 ms each way*: a proxy in a process of its own, between the clients and the server, delays every
  frame. *counted*: loopback, through a proxy that counts requests and bytes. *three servers*: loopback. The
  first session is connected to one follower, the second to the other, the third to the leader, and so on, in
  the same way for all. The servers do not sync their logs to disk.
- A session is a connection of its own, as another process would have. Each worker has a lock object
  of its own (but for one row), and a thread or goroutine of its own. The code around the locks is the same in each
  language. The process that locks takes the time.
- *uncontended* is the time of a lock and its release. *Hand-overs* are how often the lock goes to the
  next holder in a second, when all sessions want it all the time. *Release to the next holder* is the
  time from just before the release until the next holder runs.
- The *limit* is what plain requests take for the writes that every lock on ZooKeeper needs: two
  writes, one after the other, for a lock and its release; one write for a hand-over; and for many
  locks two writes each, with 64 under way. Kept places go below it.
- *Locks at once* are locks of one holder: ` + "`zklock.Multi`" + `, InterProcessMultiLock, and one ` + "`zk.Lock`" + `
  after another.
- The locks are used as their documentation shows: ` + "`zklock`" + `, ` + "`rwlock`" + `, ` + "`semaphore`" + `;
  go-zookeeper's ` + "`zk.Lock`" + `; Curator's InterProcessMutex, InterProcessReadWriteLock,
  InterProcessSemaphoreV2 and InterProcessMultiLock, in a JVM with its default options, warmed up by
  thousands of locks;
  kazoo's Lock and Semaphore; and etcd's ` + "`concurrency.Mutex`" + `. etcd is another kind of server: it runs
  on a RAM disk, and is there for orientation. All sessions have a timeout of 30 s.
- *The lock of one of so many keys*: which key is drawn at each use. turnstile uses one ` + "`zklock.Keyed`" + `, and the
  others a new lock object for each use.
- *Processor time* is what the client's process takes, with its garbage collection.
- Waiters of a session *with one lock object* have ` + "`zklock.WithLocalHandover(n)`" + `.
- *Goroutines of a session, one lock*: all of them call Lock at once, and each gives the lock back when it has it. The
  *lease left at worst* is the least that ` + "`Session.Remaining`" + ` returned meanwhile. A *zk.Conn* does not have a clock
  of that kind.
- *Another client reads*: a *zk.Conn* in a process of its own gets one small node again and again, one request at a
  time. The goroutines create nodes and delete them, with ` + "`session.Session`" + ` and with *zk.Conn*, and take no lock.
  *Nodes* are how many they do in a second.
- Memory is heap and stacks in Go. In Java it is the heap, and each waiter needs a thread besides. In
  Python it is the resident set. The locks that are held were taken one after another: a thousand goroutines
  at once leave stacks behind in the Go runtime, whatever lock they take.
`

// keptMethod says what the rows of kept places measure.
const keptMethod = `In the next rows turnstile keeps its places: all of its locks have ` + "`WithLazyRelease(time.Minute)`" + `.
The column *without* is turnstile without that option. Each session stands for a process.

- *The same lock again and again*: one goroutine locks and unlocks it.
- *Sessions with locks each*: each session takes its locks one after another. About each fiftieth time it
  takes a lock of another session instead.
- *Strict alternation*: each session takes the lock once, when the other has given it back.
- *Wait behind a kept place*: the time from the answer to a contender's create until it holds. The other
  session keeps the place then, and has used it again before.
- *Reads to a write*: every session does both.
- Kept places expire while the other rivals have their turns. So where there are many places, a round
  begins with locks that do not count.
`

// asyncMethod says what the rows of releases without a wait measure.
const asyncMethod = `In the next rows turnstile's locks have ` + "`WithAsyncRelease()`" + `, and the column *without* is turnstile without that option.
One goroutine locks and unlocks. The limit is one write.
`

// pageText returns the text about a run.
func pageText(all results, rivals []rival, s *stage, o options) string {
	var b strings.Builder
	fmt.Fprintf(&b, "With %s. %d rounds.\n\n", machine(s, rivals), o.size.rounds)
	if o.page != "" {
		fmt.Fprintf(&b, "![speed beside turnstile's](%s)\n\n", filepath.Base(o.pictureFile()))
	}
	b.WriteString(method)
	plain := slices.DeleteFunc(slices.Clone(all), func(r result) bool { return r.row.plan.lazy || r.row.plan.async })
	lazy := slices.DeleteFunc(slices.Clone(all), func(r result) bool { return !r.row.plan.lazy })
	async := slices.DeleteFunc(slices.Clone(all), func(r result) bool { return !r.row.plan.async })
	parts := []string{table(plain, o.rivals)}
	if len(lazy) > 0 {
		parts = append(parts, keptMethod, table(lazy, o.rivals))
	}
	if len(async) > 0 {
		parts = append(parts, asyncMethod, table(async, o.rivals))
	}
	parts = append(parts, blanks(all, rivals), targetTable(all.targets()))
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
		if v.Name() != turnstileName && v.Name() != withoutName {
			words = append(words, v.Version())
		}
	}
	return strings.Join(words, "; ")
}
