package cli

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// columns returns how many columns of a terminal a text takes that was cleaned: two for a character of Chinese, Japanese or
// Korean and for an emoji, none for an accent that stands on the character before it.
func columns(text string) int {
	n := 0
	for _, r := range text {
		n += columnsOf(r)
	}
	return n
}

func columnsOf(r rune) int {
	if r < 0x300 {
		return 1 // nothing else is that low
	}
	if unicode.In(r, unicode.Mn, unicode.Me) || r >= 0x1160 && r <= 0x11ff { // the latter are parts of a Korean syllable
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// cut shortens a text to n columns.
func cut(text string, n int) string {
	used := 0
	for i, r := range text {
		if used += columnsOf(r); used > n {
			return text[:i]
		}
	}
	return text
}

// short is clean, with at most n columns.
func short(text string, n int) string {
	text = clean(text)
	if columns(text) <= n {
		return text
	}
	return cut(text, n-1) + "…"
}

// table lines up columns, two spaces apart.
type table struct{ rows [][]string }

func newTable(headings ...string) *table { return &table{[][]string{headings}} }

// row adds a line. It may have fewer cells than there are columns. Cells are clean.
func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// lines returns the table. Empty cells at the end leave no spaces behind.
func (t *table) lines() []string {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row[:max(0, len(row)-1)] { // nothing follows the last cell, which may be longer
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], columns(cell))
		}
	}
	var out []string
	for _, row := range t.rows {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]+2-columns(cell)))
			}
		}
		out = append(out, strings.TrimRight(b.String(), " "))
	}
	return out
}
