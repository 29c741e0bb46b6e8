package main

import (
	"math"
	"slices"
	"strings"

	"github.com/turnstile-go/turnstile/bench/internal/chart"
)

// drawn are the rows of the picture, by key; those with a hold are left out.
var drawn = []string{"uncontended", "handover-2", "handover-10", "handover-100", "semaphore-alone", "paths"}

// picture draws the speed of each rival in proportion to ours, with and without network delay. It
// draws nothing if no such row was run.
func picture(file string, all results, shown []string) error {
	shown = slices.DeleteFunc(slices.Clone(shown), func(name string) bool { return name == withoutName })
	var groups []string
	series := make([]chart.Series, len(shown))
	for i, name := range shown {
		series[i].Name = name
	}
	for _, net := range []network{loopback, delayed} {
		for _, r := range all {
			if r.row.net != net || r.row.hold > 0 || !slices.Contains(drawn, r.row.key) {
				continue
			}
			groups = append(groups, strings.ReplaceAll(r.row.key, "-", " ")+"\n"+string(net))
			for i, name := range shown {
				x := math.NaN()
				// On loopback the limit would dwarf all other bars, and the difference to us is
				// not a round trip.
				if r.series(name, 0) != nil && !(name == limitName && net == loopback) {
					x = 1 / r.better(name, 0)
				}
				series[i].Values = append(series[i].Values, x)
			}
		}
	}
	if len(groups) == 0 {
		return nil
	}
	return chart.Bars(file, "Speed beside turnstile's: higher is faster", "times as fast", groups, series)
}
