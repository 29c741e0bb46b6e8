package main

import (
	"fmt"
	"strings"
	"time"
)

// size is how much is measured.
type size struct {
	rounds  int
	span    time.Duration // how long a round is to take, about
	cycles  int           // in a round, at least, of what nobody else wants
	crowd   int           // the most sessions that hand a lock over
	waiters int           // the longest queue, and the most locks
	burst   int           // goroutines of one session that all begin at once
	warm    int           // cycles of everybody, before the first row
}

var (
	full  = size{rounds: 9, span: 500 * time.Millisecond, cycles: 100, crowd: 100, waiters: 1000, burst: 8000, warm: 3000}
	quick = size{rounds: 1, cycles: 5, crowd: 4, waiters: 20, burst: 100, warm: 5}
)

var (
	latencies = []metric{{"median", seconds}, {"p99", seconds}}
	rates     = []metric{{"", perSecond}}
)

// rows returns all rows, in the order of the table.
func rows(z size) []row {
	var all []row
	for _, net := range []network{loopback, delayed, ensemble} {
		all = append(all, row{
			key: "uncontended", title: "lock and unlock, uncontended", net: net,
			plan: plan{kind: mutex, sessions: 1, workers: 1}, limit: twoWrites, width: 1,
			warm: z.cycles, cycles: z.cycles, metrics: latencies, measure: latency,
		})
		if net == ensemble {
			continue
		}
		for _, n := range []int{2, 10} {
			few := max(2, z.cycles/n)
			all = append(all, row{
				key: fmt.Sprint("several-", n), title: fmt.Sprintf("%d locks at once, uncontended", n), net: net,
				plan: plan{kind: several, sessions: 1, workers: 1, locks: n},
				warm: few, cycles: few, metrics: latencies, measure: latency,
			})
		}
	}
	for _, net := range []network{loopback, delayed} {
		for _, hold := range []time.Duration{0, time.Millisecond} {
			for _, n := range []int{2, 10, 100} {
				if n <= z.crowd {
					all = append(all, handovers(z, net, n, hold))
				}
			}
		}
	}
	some := min(10, z.crowd)
	all = append(all, handovers(z, ensemble, some, 0))
	for _, net := range []network{loopback, delayed, ensemble} {
		all = append(all, row{
			key: "gap", title: fmt.Sprintf("release to the next holder, %d sessions, 1 ms hold", some), net: net,
			plan: plan{kind: mutex, sessions: some, workers: some}, hold: time.Millisecond, limit: oneWrite, width: 1,
			warm: 20, cycles: 2 * z.cycles, metrics: latencies, measure: gap,
		})
	}
	for _, net := range []network{loopback, delayed} {
		all = append(all, shared(z, net)...)
	}
	all = append(all, alone(z)...)
	all = append(all, bursts(z)...)
	for _, net := range []network{loopback, delayed} {
		all = append(all, kept(z, net)...)
	}
	for _, net := range []network{loopback, delayed} {
		all = append(all, row{
			key: "async", title: "lock and unlock, uncontended, `WithAsyncRelease`", net: net,
			plan: plan{kind: mutex, sessions: 1, workers: 1, async: true}, limit: oneWrite, width: 1,
			warm: z.cycles, cycles: z.cycles, metrics: latencies, measure: latency,
		})
	}
	again := counts(z, "kept-requests", "requests of the same lock again and again, 1 ms hold")
	again.plan.lazy = true
	return append(all, again)
}

func handovers(z size, net network, sessions int, hold time.Duration) row {
	title := fmt.Sprintf("hand-overs, %d sessions, no hold", sessions)
	if hold > 0 {
		title = fmt.Sprintf("hand-overs, %d sessions, 1 ms hold", sessions)
	}
	return row{
		key: fmt.Sprint("handover-", sessions), title: title, net: net,
		plan: plan{kind: mutex, sessions: sessions, workers: sessions}, hold: hold, limit: oneWrite, width: 1,
		warm: 2 * sessions, cycles: max(z.cycles/10, 3*sessions), metrics: rates, measure: rate,
	}
}

// shared returns the rows of shared locks, of TryLock, and of many locks.
func shared(z size, net network) []row {
	some, more := min(10, z.crowd), min(20, z.crowd)
	leases := more / 4
	return []row{
		{
			key: "readers", title: fmt.Sprintf("nine reads to a write, %d sessions, 1 ms hold", some), net: net,
			plan: plan{kind: rw, sessions: some, workers: some, every: 10}, hold: time.Millisecond,
			warm: 100, cycles: 2 * z.cycles, metrics: rates, measure: rate,
		},
		{
			key: "semaphore-alone", title: "semaphore of 10, uncontended", net: net,
			plan: plan{kind: semaphore, sessions: 1, workers: 1, leases: 10}, limit: twoWrites, width: 1,
			warm: z.cycles, cycles: z.cycles, metrics: latencies, measure: latency,
		},
		{
			key: "semaphore", title: fmt.Sprintf("semaphore of %d, %d sessions, 1 ms hold", leases, more), net: net,
			plan: plan{kind: semaphore, sessions: more, workers: more, leases: leases}, hold: time.Millisecond,
			warm: 40, cycles: 2 * z.cycles, metrics: rates, measure: rate,
		},
		{
			key: "try", title: "try a lock that is held", net: net, try: true,
			plan: plan{kind: mutex, sessions: 2, workers: 2},
			warm: z.cycles, cycles: z.cycles, metrics: []metric{{"median", seconds}}, measure: tries,
		},
		{
			key: "paths", title: fmt.Sprintf("%d locks on one session, at once", z.waiters), net: net,
			plan:  plan{kind: mutex, sessions: 1, workers: z.waiters, apart: true},
			limit: twoWrites, width: 64,
			warm: 3 * z.waiters, cycles: z.waiters, metrics: rates, measure: rate,
		},
		{
			key: "keyed", title: fmt.Sprintf("16 workers of a session, at each use the lock of one of %d keys", z.waiters), net: net,
			plan:  plan{kind: keyed, sessions: 1, workers: 16, locks: z.waiters},
			limit: twoWrites, width: 16,
			warm: 3 * z.waiters, cycles: z.waiters, metrics: rates, measure: rate,
		},
	}
}

// alone returns the rows that count, where the network does not matter.
func alone(z size) []row {
	all := []row{counts(z, "requests", "requests of an uncontended lock and unlock, 1 ms hold")}
	for _, n := range []int{z.waiters / 10, z.waiters} {
		all = append(all, row{
			key: fmt.Sprint("drain-", n), title: fmt.Sprintf("%d waiters on 10 sessions, a hand-over each", n), net: counted,
			plan: plan{kind: mutex, sessions: 10, workers: n + 1}, rounds: 5,
			metrics: []metric{{"to drain", seconds}, {"requests each", count}, {"bytes each", inBytes}}, measure: drain,
		})
	}
	return append(all,
		row{
			key: "processor", title: "processor time of a lock and unlock, uncontended", net: loopback,
			plan: plan{kind: mutex, sessions: 1, workers: 1}, limit: twoWrites, width: 1,
			warm: z.cycles, cycles: 5 * z.cycles, metrics: []metric{{"", processor}}, measure: processorTime,
		},
		row{
			key: "memory", title: fmt.Sprintf("%d held locks", z.waiters), net: loopback,
			plan: plan{kind: mutex, sessions: 1, workers: z.waiters, apart: true}, rounds: 3,
			metrics: []metric{{"memory each", inBytes}}, measure: memoryHeld,
		},
		row{
			key: "memory", title: fmt.Sprintf("%d waiters for a lock", z.waiters), net: loopback,
			plan: plan{kind: mutex, sessions: 10, workers: z.waiters}, rounds: 3,
			metrics: []metric{{"memory each", inBytes}}, measure: memoryWaiting,
		},
		row{
			key: "memory", title: fmt.Sprintf("%d waiters in 10 sessions, those of a session with one lock object", z.waiters), net: loopback,
			plan: plan{kind: mutex, sessions: 10, workers: z.waiters, shared: true}, rounds: 3,
			metrics: []metric{{"memory each", inBytes}}, measure: memoryWaiting,
		},
	)
}

// bursts returns the rows of many goroutines that begin at once in one session. Curator and kazoo would need a thread
// for each of them.
func bursts(z size) []row {
	return []row{
		{
			key: "burst", title: fmt.Sprintf("%d goroutines of a session, one lock", z.burst), net: loopback,
			plan: plan{kind: mutex, sessions: 1, workers: z.burst}, rounds: 3, goOnly: true,
			metrics: []metric{{"until all were served", seconds}, {"sessions lost", whole}, {"lease left at worst", remaining}},
			measure: burst,
		},
		{
			key:   "neighbour",
			title: fmt.Sprintf("%d goroutines of a session create nodes, and another client reads", z.burst), net: loopback,
			plan: plan{kind: twoWrites, sessions: 1, workers: z.burst}, warm: z.burst, cycles: z.burst, goOnly: true,
			metrics: []metric{{"reads", frequency}, {"reads without them", unburdened}, {"nodes", frequency}}, measure: neighbour,
		},
	}
}

func counts(z size, key, title string) row {
	return row{
		key: key, title: title, net: counted,
		plan: plan{kind: mutex, sessions: 1, workers: 1}, hold: time.Millisecond, warm: 10, cycles: 2 * z.cycles, rounds: 1,
		metrics: []metric{{"writes", count}, {"listings", count}, {"other", count}}, measure: requests,
	}
}

// kept returns the rows in which turnstile keeps its places.
func kept(z size, net network) []row {
	some, locks := min(10, z.crowd), z.waiters/10
	all := []row{
		{
			key: "kept", title: "the same lock again and again", net: net,
			plan: plan{kind: mutex, sessions: 1, workers: 1, lazy: true}, limit: twoWrites, width: 1,
			warm: z.cycles, cycles: z.cycles, metrics: rates, measure: rate,
		},
		{
			key: "kept-own", title: fmt.Sprintf("%d sessions with %d locks each, 2 %% of the uses another's", some, locks), net: net,
			plan: plan{kind: own, sessions: some, workers: some, locks: locks, lazy: true},
			warm: some * locks, cycles: some * locks, metrics: rates, measure: lasting,
		},
		{
			key: "kept-turns", title: "2 sessions in strict alternation", net: net,
			plan: plan{kind: mutex, sessions: 2, workers: 2, turns: 1, lazy: true},
			warm: z.cycles, cycles: z.cycles, metrics: rates, measure: rate,
		},
		{
			key: "kept-wait", title: "wait behind a kept place", net: net,
			plan: plan{kind: mutex, sessions: 2, workers: 2, turns: 2, lazy: true}, limit: oneWrite, width: 1,
			warm: 20, cycles: 2 * z.cycles, metrics: latencies, measure: gap,
		},
	}
	for _, every := range []int{100, 1000} {
		all = append(all, row{
			key: fmt.Sprint("kept-reads-", every-1), title: fmt.Sprintf("%d reads to a write, %d sessions, no hold", every-1, some), net: net,
			plan: plan{kind: rw, sessions: some, workers: some, every: every, lazy: true},
			warm: min(every, 10*z.cycles), cycles: min(every, 10*z.cycles), metrics: rates, measure: lasting,
		})
	}
	return all
}

// lacks says why a rival has no part in a row.
func lacks(name string, r row) string {
	if name == beforeName {
		return ""
	}
	if r.plan.turns > 1 && name != turnstileName && name != limitName {
		return "only turnstile keeps places to wait for"
	}
	if r.plan.async && name != turnstileName && name != limitName && name != withoutName {
		return "only turnstile has releases that nobody waits for; the first rows have a lock and unlock of the others"
	}
	if r.plan.shared && name != turnstileName {
		return "only turnstile hands a lock on within a process"
	}
	if r.goOnly && name != turnstileName && name != zkLockName {
		return "of bursts, those of go-zookeeper and turnstile alone were measured"
	}
	return missing[name](r)
}

// missing says, for each rival, why it has no part in a row that others have a part in.
var missing = map[string]func(row) string{
	turnstileName: func(row) string { return "" },
	withoutName: func(r row) string {
		if !r.plan.lazy && !r.plan.async {
			return "where turnstile has no option, there is no difference"
		}
		return ""
	},
	zkLockName: func(r row) string {
		switch {
		case r.plan.kind == rw || r.plan.kind == semaphore:
			return "go-zookeeper has a mutex alone"
		case r.try:
			return "zk.Lock has no TryLock"
		}
		return ""
	},
	curatorName: func(row) string { return "" },
	kazooName: func(r row) string {
		if r.plan.kind == several {
			return "kazoo has no lock of several"
		}
		if r.plan.kind == rw {
			return "a reader of kazoo 2.8 and a writer can wait for each other for ever (https://github.com/python-zk/kazoo/issues/649)"
		}
		return ""
	},
	etcdName: func(r row) string {
		switch {
		case r.plan.kind != mutex:
			return "of etcd, the mutex alone was measured"
		case r.net == ensemble:
			return "one etcd server alone was run"
		case strings.HasSuffix(r.key, "requests"):
			return "only ZooKeeper's requests were counted"
		}
		return ""
	},
	limitName: func(r row) string {
		if r.limit == "" {
			return "the limits are for rows that writes bound"
		}
		return ""
	},
}
