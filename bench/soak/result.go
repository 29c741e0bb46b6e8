package main

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/bench/internal/chart"
)

// table returns the result of the run in Markdown.
func (s *soak) table() string {
	first, last := s.base, s.settled[len(s.settled)-1]
	grants, _, _ := s.referee.Result()
	var b strings.Builder
	fmt.Fprintf(&b, "`go run ./soak -for %v`, seed %d: %d managers with %d goroutines each, on one server\n",
		last.at.Round(time.Second), s.seed, clients, workersEach)
	fmt.Fprintf(&b, "(%s, %d processors, the server among them). %d cycles of load and settling.\n\n",
		runtime.Version(), runtime.NumCPU(), len(s.settled))
	fmt.Fprintf(&b, "- %d uses of locks: %s.\n", s.tally.total(s.tally.ops), s.tally.list(s.tally.ops))
	fmt.Fprintf(&b, "- How they ended: %s.\n", s.tally.list(s.tally.outcomes))
	fmt.Fprintf(&b, "- %d faults: %s.\n", s.tally.total(s.tally.faults), s.tally.list(s.tally.faults))
	fmt.Fprintf(&b, "- %d holds were compared with those beside them; none was held that excludes another.\n", grants)
	fmt.Fprintf(&b, "- When everybody had let go, a fresh client got all there is at a place within %v at most,\n",
		s.slowestEntry.Round(time.Millisecond))
	fmt.Fprintf(&b, "  and nothing more than at the beginning was in use after %v at most.\n\n", s.slowestSettle.Round(time.Millisecond))

	fmt.Fprintln(&b, "| settled | before the first cycle | after the last | most of any | under load, most |")
	fmt.Fprintln(&b, "|---|---:|---:|---:|---:|")
	for _, f := range figures {
		row := func(samples []sample) string {
			most := f.of(samples[0])
			for _, one := range samples {
				most = max(most, f.of(one))
			}
			return f.format(most)
		}
		load := "?"
		if len(s.loaded) > 0 {
			load = row(s.loaded)
		}
		before := f.format(f.of(first))
		if f.heap {
			before = "–" // of no use: the first cycle leaves what stays for good
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", f.name, before, f.format(f.of(last)), row(s.settled), load)
	}
	if early, late, err := judgeHeap(s.settled); err == nil {
		fmt.Fprintf(&b, "\nHeap, median of the first third of the cycles (without the first %d) and of the last: %.2f and %.2f MiB.\n",
			warmUp, float64(early)/(1<<20), float64(late)/(1<<20))
	}
	return b.String()
}

// figure is one thing that is sampled.
type figure struct {
	name string
	of   func(sample) float64
	heap bool
}

func (f figure) format(v float64) string {
	if f.heap {
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

var figures = []figure{
	{name: "goroutines", of: func(s sample) float64 { return float64(s.Goroutines) }},
	{name: "heap, MiB", of: func(s sample) float64 { return float64(s.Heap) / (1 << 20) }, heap: true},
	{name: "open files", of: func(s sample) float64 { return float64(s.Files) }},
	{name: "server: watches", of: func(s sample) float64 { return float64(s.Watches) }},
	{name: "server: nodes", of: func(s sample) float64 { return float64(s.Nodes) }},
	{name: "server: ephemeral nodes", of: func(s sample) float64 { return float64(s.Ephemerals) }},
	{name: "server: sessions", of: func(s sample) float64 { return float64(s.Sessions) }},
	{name: "server: connections", of: func(s sample) float64 { return float64(s.Conns) }},
}

// draw plots all samples over time.
func (s *soak) draw(file string) error {
	var panels []chart.Panel
	for _, f := range figures {
		line := func(name string, samples []sample, dots bool) chart.Line {
			l := chart.Line{Name: name, Dots: dots}
			for _, one := range samples {
				l.X = append(l.X, one.at.Minutes())
				l.Y = append(l.Y, f.of(one))
			}
			return l
		}
		panels = append(panels, chart.Panel{Title: f.name, Lines: []chart.Line{
			line("under load", s.loaded, false), line("settled", s.settled, true),
		}})
	}
	return chart.Lines(file, "minutes", 2, panels)
}
