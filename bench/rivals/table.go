package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// table returns the results of all rows in Markdown. Behind a rival's number stands how many times as
// good ours is. Rivals that have no number in any row are left out.
func table(all []result, shown []string) string {
	shown = slices.DeleteFunc(slices.Clone(shown), func(name string) bool {
		return !slices.ContainsFunc(all, func(r result) bool { return r.series(name, 0) != nil })
	})
	if len(shown) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| | network | %s |\n|---|---|%s\n", strings.Join(shown, " | "), strings.Repeat("---|", len(shown)))
	for _, r := range all {
		for i, m := range r.row.metrics {
			title := r.row.title
			if m.name != "" {
				title += ": " + m.name
			}
			fmt.Fprintf(&b, "| %s | %s |", title, r.row.net)
			for _, name := range shown {
				fmt.Fprintf(&b, " %s |", r.cell(name, i))
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func (r result) cell(name string, i int) string {
	x := median(r.series(name, i))
	if math.IsNaN(x) {
		return "–"
	}
	u := r.row.metrics[i].unit
	ratio := r.better(name, i)
	if name == turnstileName || !u.ratio || math.IsNaN(ratio) || math.IsInf(ratio, 0) {
		return u.format(x)
	}
	return fmt.Sprintf("%s (%.2f)", u.format(x), ratio)
}

// blanks says why a rival has no part in some rows.
func blanks(all []result, rivals []rival) string {
	var b strings.Builder
	for _, v := range rivals {
		var why []string
		for _, r := range all {
			if s := v.Lacks(r.row); s != "" && !slices.Contains(why, s) {
				why = append(why, s)
			}
		}
		if len(why) > 0 {
			fmt.Fprintf(&b, "- %s: %s.\n", v.Name(), strings.Join(why, "; "))
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "Where there is no number:\n\n" + b.String()
}
