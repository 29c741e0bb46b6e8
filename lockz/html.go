package lockz

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

//go:embed page.html
var pageText string

//go:embed page.css
var style string

// contentPolicy allows the page its own style and nothing else.
var contentPolicy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}()

// mostRows bounds the rows of one table. A browser on a phone cannot show thousands.
const mostRows = 500

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"ago":   ago,
	"clock": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") },
	"stamp": func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
}).Parse(pageText))

type row[T any] struct {
	Ensemble string // "" if there is only one manager
	Of       T
}

// rows returns the rows of all managers, in order.
func rows[T any](managers []managerJSON, of func(managerJSON) []T, order func(a, b T) int) []row[T] {
	var all []row[T]
	for _, m := range managers {
		for _, one := range of(m) {
			r := row[T]{Of: one}
			if len(managers) > 1 {
				r.Ensemble = m.Ensemble
			}
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b row[T]) int { return order(a.Of, b.Of) })
	return all
}

func (p *pageJSON) writeHTML(w io.Writer) error {
	losses := rows(p.Managers, func(m managerJSON) []lossJSON { return m.Losses }, func(a, b lossJSON) int { return b.Time.Compare(a.Time) })
	waits := rows(p.Managers, func(m managerJSON) []waitJSON { return m.Waits }, func(a, b waitJSON) int { return a.Since.Compare(b.Since) })
	elections := rows(p.Managers, func(m managerJSON) []electionJSON { return m.Elections }, func(a, b electionJSON) int { return strings.Compare(a.Path, b.Path) })
	holds := rows(p.Managers, func(m managerJSON) []holdJSON { return m.Holds }, func(a, b holdJSON) int { return a.Since.Compare(b.Since) })
	return pageTemplate.Execute(w, map[string]any{
		"ID": p.ID, "Time": p.Time, "Totals": p.Totals, "Managers": p.Managers, "Style": template.CSS(style),
		"Losses": losses[:min(len(losses), maxLosses)], "Elections": elections,
		"Waits": waits[:min(len(waits), mostRows)], "MoreWaits": len(waits) - mostRows,
		"Holds": holds[:min(len(holds), mostRows)], "MoreHolds": len(holds) - mostRows,
	})
}

// ago formats a number of seconds: with a tenth below ten seconds, and otherwise without.
func ago(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	if math.Abs(seconds) < 10 {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
