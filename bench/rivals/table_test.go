package main

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// sample is a row whose every metric is measured with these medians; ours is 2 where
// nothing is given.
func sample(key string, net network, medians map[string]float64) result {
	for _, r := range rows(full) {
		if r.key != key || r.net != net {
			continue
		}
		res := result{row: r, values: map[string][][]float64{turnstileName: nil}}
		for name, x := range medians {
			for range r.metrics {
				res.values[name] = append(res.values[name], []float64{x, x, x})
			}
		}
		if res.values[turnstileName] == nil {
			for range r.metrics {
				res.values[turnstileName] = append(res.values[turnstileName], []float64{1, 2, 3})
			}
		}
		return res
	}
	panic("no row " + key)
}

func TestTable(t *testing.T) {
	got := table([]result{
		sample("uncontended", loopback, map[string]float64{zkLockName: 3}),
		sample("try", loopback, map[string]float64{kazooName: 3}),
	}, []string{turnstileName, zkLockName, curatorName, kazooName})
	want := `| | network | turnstile | zk.Lock | kazoo |
|---|---|---|---|---|
| lock and unlock, uncontended: median | loopback | 2.00 s | 3.00 s (1.50) | – |
| lock and unlock, uncontended: p99 | loopback | 2.00 s | 3.00 s (1.50) | – |
| try a lock that is held: median | loopback | 2.00 s | – | 3.00 s (1.50) |
`
	if got != want {
		t.Errorf("table:\n%s\nwant:\n%s", got, want)
	}
}

func TestReadmeText(t *testing.T) {
	var all results
	for _, f := range mainFigures {
		all = append(all, sample(f.key, f.net, map[string]float64{zkLockName: 3, curatorName: 4, kazooName: 5}))
	}
	got, err := readmeText(all)
	const head, first = "| | network | turnstile | zk.Lock | Curator |\n|---|---|---:|---:|---:|\n",
		"| a lock and its release | 1 ms each way | 2.00 s | 3.00 s | 4.00 s |\n"
	if err != nil || !strings.HasPrefix(got, head+first) || strings.Count(got, "\n") != 2+len(mainFigures) {
		t.Errorf("%v, the table is\n%s\nwant it to begin with\n%s", err, got, head+first)
	}
	if _, err := readmeText(all[1:]); err == nil {
		t.Error("a row is missing: no error")
	}
}

// TestBetter checks that a ratio above 1 is in our favour, whether more or less of the unit is better,
// and that it is the median of the rounds' ratios.
func TestBetter(t *testing.T) {
	times := result{row: row{metrics: latencies}, values: map[string][][]float64{turnstileName: {{1, 10, 2}}, etcdName: {{3, 30, 2}}}}
	if x := times.better(etcdName, 0); x != 3 {
		t.Errorf("times: %v, want 3", x)
	}
	times.row.metrics = rates
	if x := times.better(etcdName, 0); x != 1.0/3 {
		t.Errorf("rates: %v, want a third", x)
	}
	if x := times.better(kazooName, 0); !math.IsNaN(x) {
		t.Errorf("with nobody: %v", x)
	}
}

func TestTargets(t *testing.T) {
	all := results{
		sample("uncontended", delayed, map[string]float64{turnstileName: 1.07, limitName: 1}),
		sample("handover-10", delayed, map[string]float64{turnstileName: 1, limitName: 1.2}),
		sample("handover-100", delayed, map[string]float64{turnstileName: 1, limitName: 1.3}),
		sample("handover-10", loopback, map[string]float64{turnstileName: 2, zkLockName: 1, kazooName: 4}),
		sample("semaphore-alone", delayed, map[string]float64{turnstileName: 1, curatorName: 2.9}),
	}
	met := map[string]bool{}
	for _, x := range all.targets() {
		met[strings.Fields(x.text)[0]+strings.Fields(x.text)[1]] = x.met
		if strings.HasPrefix(x.text, "loopback") && x.measured != "slower in hand-overs, 10 sessions, no hold, kazoo (0.50)" {
			t.Errorf("ahead says %q", x.measured)
		}
	}
	want := map[string]bool{"lockand": true, "hand-over,10": true, "hand-over,100": false, "loopback:faster": false, "semaphoreof": false}
	for k, v := range want {
		if got, ok := met[k]; !ok || got != v {
			t.Errorf("%s: met %v, judged %v; want met %v", k, got, ok, v)
		}
	}
	if len(met) != len(want) {
		t.Errorf("targets: %v", met)
	}
	if (results{}).targets() != nil {
		t.Error("targets are judged by no rows")
	}
}

// Each target of a single row is met at its bound, and missed behind it.
func TestTargetsOfRows(t *testing.T) {
	for _, c := range []struct {
		key         string
		net         network
		rival       string
		met, missed float64 // ours; the rival has 1
	}{
		{"paths", loopback, zkLockName, 1.5, 1.49},
		{"paths", loopback, limitName, 1.01, 0.99},
		{"paths", delayed, zkLockName, 1.5, 1.49},
		{"paths", delayed, limitName, 1.01, 0.99},
		{"kept", loopback, zkLockName, 200, 199},
		{"kept", delayed, zkLockName, 2000, 1999},
		{"kept-own", loopback, withoutName, 5, 4.9},
		{"kept-own", delayed, withoutName, 5, 4.9},
		{"kept-turns", loopback, withoutName, 0.95, 0.94},
		{"kept-turns", delayed, withoutName, 0.95, 0.94},
		{"processor", loopback, zkLockName, 1, 1.01},
		{"kept-wait", delayed, limitName, 1.25, 1.26},
		{"async", delayed, limitName, 1.08, 1.09},
		{"async", loopback, withoutName, 0.66, 0.67},
		{"kept-reads-99", delayed, curatorName, 5, 4.9},
		{"kept-reads-999", delayed, curatorName, 25, 24},
	} {
		for _, met := range []bool{true, false} {
			us := c.missed
			if met {
				us = c.met
			}
			all := results{sample(c.key, c.net, map[string]float64{turnstileName: us, c.rival: 1})}
			judged := slices.DeleteFunc(all.targets(), func(x target) bool { return strings.HasPrefix(x.text, "loopback:") })
			if len(judged) != 1 || judged[0].met != met {
				t.Errorf("%s, %s: %v beside %s: %+v, want met %v", c.key, c.net, us, c.rival, judged, met)
			}
		}
	}
}

// A kept place that sends a request now and then misses its target.
func TestNoRequestsTarget(t *testing.T) {
	for requests, met := range map[float64]bool{0: true, 0.01: false} {
		got, ok := results{sample("kept-requests", counted, map[string]float64{turnstileName: requests})}.noRequests()
		if !ok || got.met != met {
			t.Errorf("%v requests: %+v, judged %v", requests, got, ok)
		}
	}
}

// TestBytesTarget has hand-overs that take a listing each, and then two.
func TestBytesTarget(t *testing.T) {
	const name = 59
	for listings, met := range map[float64]bool{0: true, 1: true, 2: false} {
		short := sample("drain-100", counted, map[string]float64{turnstileName: 500 + listings*50*name})
		long := sample("drain-1000", counted, map[string]float64{turnstileName: 500 + listings*500*name})
		got, ok := results{short, long}.bytes()
		if !ok || got.met != met {
			t.Errorf("%v listings: %+v, judged %v", listings, got, ok)
		}
	}
}

func TestQuantile(t *testing.T) {
	all := []time.Duration{4 * time.Second, time.Second, 3 * time.Second, 2 * time.Second}
	if x := quantile(all, 0.5); x != 3 {
		t.Errorf("median %v", x)
	}
	if x := quantile(all, 0.99); x != 4 {
		t.Errorf("p99 %v", x)
	}
	if x := quantile(nil, 0.5); !math.IsNaN(x) {
		t.Errorf("of nothing %v", x)
	}
}
