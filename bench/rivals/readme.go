package main

import (
	"fmt"
	"math"
	"strings"
)

const readme = "../README.md"

// mainFigures are the rows of the table in README.md.
var mainFigures = []struct {
	title, key string
	net        network
}{
	{"a lock and its release", "uncontended", delayed},
	{"the same", "uncontended", ensemble},
	{"hand-overs among ten sessions", "handover-10", delayed},
	{"locks of one session, at different paths", "paths", delayed},
	{"the same lock again and again, with `WithLazyRelease`", "kept", delayed},
}

// readmeText returns the table for README.md, with the rivals on ZooKeeper that other Go and Java programs use.
func readmeText(all results) (string, error) {
	shown := []string{turnstileName, zkLockName, curatorName}
	var b strings.Builder
	fmt.Fprintf(&b, "| | network | %s |\n|---|---|%s\n", strings.Join(shown, " | "), strings.Repeat("---:|", len(shown)))
	for _, f := range mainFigures {
		r, ok := all.find(f.key, f.net, false)
		if !ok {
			return "", fmt.Errorf("no row %s, %s for %s", f.key, f.net, readme)
		}
		fmt.Fprintf(&b, "| %s | %s |", f.title, f.net)
		for _, name := range shown {
			x := median(r.series(name, 0))
			if math.IsNaN(x) {
				return "", fmt.Errorf("%s has no number in the row %s, %s for %s", name, f.key, f.net, readme)
			}
			fmt.Fprintf(&b, " %s |", r.row.metrics[0].unit.format(x))
		}
		b.WriteString("\n")
	}
	return b.String(), nil
}
