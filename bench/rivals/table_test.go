package main

import (
	"math"
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
	got := table([]result{sample("uncontended", loopback, map[string]float64{zkLockName: 3})}, []string{turnstileName, zkLockName, kazooName})
	want := `| | network | turnstile | zk.Lock | kazoo |
|---|---|---|---|---|
| lock and unlock, uncontended: median | loopback | 2.00 s | 3.00 s (1.50) | – |
| lock and unlock, uncontended: p99 | loopback | 2.00 s | 3.00 s (1.50) | – |
`
	if got != want {
		t.Errorf("table:\n%s\nwant:\n%s", got, want)
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
	want := map[string]bool{"lockand": true, "hand-over,10": true, "hand-over,100": false, "loopback:faster": false, "semaphore,to": false}
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
