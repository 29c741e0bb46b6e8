package lockz

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"iter"
	"math"
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

// writeHTML writes the page. refresh is in seconds, or 0.
func (p *page) writeHTML(w io.Writer, refresh int) error {
	data := struct {
		pageJSON
		Refresh  int
		Style    template.CSS
		Sections []section
	}{pageJSON: p.pageJSON, Refresh: refresh, Style: template.CSS(style)}
	for _, s := range p.snapshots {
		data.Sections = append(data.Sections, sectionOf(s))
	}
	return pageTemplate.Execute(w, data)
}

// section is the part of the page about one manager.
type section struct {
	managerJSON
	HoldCount, WaitCount int
	MoreHolds, MoreWaits int // those that the page does not show
}

func sectionOf(s *snapshot) section {
	out := section{managerJSON: s.managerJSON, HoldCount: len(s.holds), WaitCount: len(s.waits)}
	out.Holds, out.Waits = firstRows(s.heldLocks), firstRows(s.waitsFor)
	out.MoreHolds, out.MoreWaits = out.HoldCount-len(out.Holds), out.WaitCount-len(out.Waits)
	return out
}

func firstRows[T any](all iter.Seq[T]) (rows []T) {
	for row := range all {
		if len(rows) == mostRows {
			break
		}
		rows = append(rows, row)
	}
	return rows
}

// ago formats a number of seconds: with a tenth below ten seconds, and otherwise without.
func ago(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	if math.Abs(seconds) < 10 {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
