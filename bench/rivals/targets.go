package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// target is a goal, and the measured result.
type target struct {
	text     string
	measured string
	met      bool
}

// results finds rows.
type results []result

func (all results) find(key string, net network, hold bool) (result, bool) {
	i := slices.IndexFunc(all, func(r result) bool {
		return r.row.key == key && r.row.net == net && (r.row.hold > 0) == hold
	})
	if i < 0 {
		return result{}, false
	}
	return all[i], true
}

// targets returns the targets that can be judged by the rows that were run.
func (all results) targets() []target {
	var out []target
	add := func(t target, ok bool) {
		if ok {
			out = append(out, t)
		}
	}
	add(all.ofLimit("uncontended", "lock and unlock, 1 ms each way: at most 1.08 of two write round trips", 1.08))
	add(all.ofLimit("handover-10", "hand-over, 10 sessions, 1 ms each way: at most 1.25 of one write round trip", 1.25))
	add(all.ofLimit("handover-100", "hand-over, 100 sessions, 1 ms each way: at most 1.25 of one write round trip", 1.25))
	add(all.ahead())
	add(all.several(2, loopback, 1.4))
	add(all.several(10, delayed, 1.3))
	add(all.times("semaphore-alone", delayed, curatorName, 3))
	for _, net := range []network{loopback, delayed} {
		add(all.times("paths", net, zkLockName, 1.5))
		add(all.times("paths", net, limitName, 1))
	}
	add(all.costs("processor", "processor time of a lock and unlock: at most that of *zk.Lock*"))
	add(all.requests())
	add(all.bytes())
	add(all.times("kept", loopback, zkLockName, 200))
	add(all.times("kept", delayed, zkLockName, 2000))
	add(all.noRequests())
	for _, net := range []network{loopback, delayed} {
		add(all.times("kept-own", net, withoutName, 5))
		add(all.times("kept-turns", net, withoutName, 0.95))
	}
	add(all.ofLimit("kept-wait", "wait behind a kept place, 1 ms each way: at most 1.25 of one write round trip", 1.25))
	add(all.ofLimit("async", "lock and unlock with WithAsyncRelease, 1 ms each way: at most 1.08 of one write round trip", 1.08))
	add(all.times("async", loopback, withoutName, 1.5))
	add(all.times("kept-reads-99", delayed, curatorName, 5))
	add(all.times("kept-reads-999", delayed, curatorName, 25))
	return out
}

// guardedRows are the rows that guard judges: a regular expression.
const guardedRows = `^(uncontended|handover-10) .*(no hold|uncontended), (loopback|1 ms each way)$`

// guard fails if a lock and its release, or a hand-over, take much more beside what they are measured with in the same run. The
// bounds leave room for a busy machine: on a quiet one, a lock and its release take 1.2 times as long as two plain writes, and 1.03
// times at 1 ms each way; and there are 1.2 and 1.9 times as many hand-overs as zk.Lock has.
func (all results) guard(out io.Writer) error {
	var judged []target
	for _, b := range []struct {
		net         network
		most, least float64
	}{{loopback, 1.7, 0.85}, {delayed, 1.3, 1.3}} {
		one, ok := all.find("uncontended", b.net, false)
		next, okNext := all.find("handover-10", b.net, false)
		if !ok || !okNext {
			return fmt.Errorf("no row with %s", b.net)
		}
		x, y := 1/one.better(limitName, 0), next.better(zkLockName, 0)
		judged = append(judged,
			target{fmt.Sprintf("%s: at most %v of two writes", one.row, b.most), fmt.Sprintf("%.2f", x), x <= b.most},
			target{fmt.Sprintf("%s: at least %v of *zk.Lock*", next.row, b.least), fmt.Sprintf("%.2f", y), y >= b.least})
	}
	fmt.Fprint(out, "\n"+targetTable(judged))
	if slices.ContainsFunc(judged, func(t target) bool { return !t.met }) {
		return errors.New("slower than the bounds allow")
	}
	return nil
}

// times judges how many times as fast as a rival we are in a row.
func (all results) times(key string, net network, name string, least float64) (target, bool) {
	r, ok := all.find(key, net, false)
	if !ok {
		return target{}, false
	}
	x := r.better(name, 0)
	text := fmt.Sprintf("%s: at least %v times as fast as *%s*", r.row, least, name)
	return target{text, fmt.Sprintf("%.2f", x), x >= least}, !math.IsNaN(x)
}

// costs judges whether we take no more of something than zk.Lock.
func (all results) costs(key, text string) (target, bool) {
	r, ok := all.find(key, loopback, false)
	if !ok {
		return target{}, false
	}
	x := 1 / r.better(zkLockName, 0)
	return target{text, fmt.Sprintf("%.2f of it", x), x <= 1}, !math.IsNaN(x)
}

// ofLimit returns how far a row is from its limit, with a network that takes time.
func (all results) ofLimit(key, text string, most float64) (target, bool) {
	r, ok := all.find(key, delayed, false)
	if !ok {
		return target{}, false
	}
	x := 1 / r.better(limitName, 0)
	return target{text, fmt.Sprintf("%.3f", x), x <= most}, !math.IsNaN(x)
}

// peers are the rivals that do the same job on the same server.
var peers = []string{zkLockName, curatorName, kazooName}

// ahead compares us with all rivals. It names the row in which we are the fewest times as fast as
// a rival, or all rows in which we are slower. Memory and bytes are not speed.
func (all results) ahead() (target, bool) {
	least, where := math.Inf(1), ""
	var behind []string
	for _, r := range all {
		if r.row.net != loopback && r.row.net != counted {
			continue
		}
		for i, m := range r.row.metrics {
			for _, name := range peers {
				x := r.better(name, i)
				if !m.unit.speed || math.IsNaN(x) {
					continue
				}
				here := fmt.Sprintf("%s, %s (%.2f)", strings.TrimSuffix(r.row.title+": "+m.name, ": "), name, x)
				if x < least {
					least, where = x, here
				}
				if x < 1 {
					behind = append(behind, here)
				}
			}
		}
	}
	if len(behind) > 0 {
		where = "slower in " + strings.Join(behind, "; ")
	} else {
		where = "least in " + where
	}
	return target{"loopback: faster than every rival in every row", where, least > 1}, !math.IsInf(least, 0)
}

// several compares several locks, taken at once, with one.
func (all results) several(n int, net network, most float64) (target, bool) {
	many, ok := all.find(fmt.Sprint("several-", n), net, false)
	one, okOne := all.find("uncontended", net, false)
	if !ok || !okOne {
		return target{}, false
	}
	x := median(many.series(turnstileName, 0)) / median(one.series(turnstileName, 0))
	text := fmt.Sprintf("%d locks at once, uncontended, %s: at most %.1f times one", n, net, most)
	return target{text, fmt.Sprintf("%.2f", x), x <= most}, !math.IsNaN(x)
}

// requests allows for the few listings that the server makes before the create that was sent
// ahead of them, and that have to be made again.
func (all results) requests() (target, bool) {
	r, ok := all.find("requests", counted, true)
	if !ok {
		return target{}, false
	}
	writes, listings, other := median(r.series(turnstileName, 0)), median(r.series(turnstileName, 1)), median(r.series(turnstileName, 2))
	text := "requests, uncontended: 3 (create, getChildren, delete), and what watches the own node"
	return target{text, fmt.Sprintf("%.2f, and %.2f", writes+listings, other), writes+listings <= 3.05}, true
}

// noRequests wants not a single one.
func (all results) noRequests() (target, bool) {
	r, ok := all.find("kept-requests", counted, true)
	if !ok {
		return target{}, false
	}
	var sum float64
	for i := range r.row.metrics {
		sum += median(r.series(turnstileName, i))
	}
	return target{"the same lock again and again: 0 requests", fmt.Sprintf("%.2f", sum), sum == 0}, true
}

// bytes compares how many more bytes a hand-over takes in a queue ten times as long with
// how many more one listing of such a queue has.
func (all results) bytes() (target, bool) {
	var drains []result
	for _, r := range all {
		if strings.HasPrefix(r.row.key, "drain-") && r.series(turnstileName, 2) != nil {
			drains = append(drains, r)
		}
	}
	if len(drains) != 2 {
		return target{}, false
	}
	// While a queue runs dry it is half as long on average. A name has its length before it.
	const name = 4 + len("_c_xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx-lock-0123456789")
	short, long := drains[0], drains[1]
	listing := float64(long.row.plan.workers-short.row.plan.workers) / 2 * float64(name)
	more := median(long.series(turnstileName, 2)) - median(short.series(turnstileName, 2))
	text := "bytes of a hand-over: grow with the queue by one listing at most"
	return target{text, fmt.Sprintf("by %.3f of a listing", more/listing), more/listing <= 1.02}, true
}

func targetTable(all []target) string {
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("| target | measured | |\n|---|---|---|\n")
	for _, t := range all {
		met := "met"
		if !t.met {
			met = "missed"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", t.text, t.measured, met)
	}
	return b.String()
}
