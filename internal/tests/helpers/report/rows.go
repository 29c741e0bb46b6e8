package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Row is one part of a measurement that is made in parts: the cells of a table by the names of its columns.
type Row []Cell

// Cell is a cell of a [Row].
type Cell struct {
	Column string
	Value  any // an int or a [time.Duration] is added up over all rows
}

// AddRow adds a row to the table in a section of a page, and keeps those that are there. The first column says when a
// row was made, and from which commit. The last row adds up the columns whose cells are all numbers or durations. The
// first call in a section begins its table. A row whose columns are not those of the table is an error.
func AddRow(page, name string, r Row) error {
	old, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	now, err := Now(filepath.Dir(page))
	if err != nil {
		return err
	}
	columns, added := []string{"made"}, []string{now.String()}
	for _, c := range r {
		columns = append(columns, c.Column)
		added = append(added, fmt.Sprint(c.Value))
	}
	rows := tableOf(sectionOf(string(old), name))
	if len(rows) == 0 {
		rows = [][]string{columns}
	} else if got := strings.Join(rows[0], " | "); got != strings.Join(columns, " | ") {
		return fmt.Errorf("report: %s: section %s has columns %q, and the row has %q", page, name, got, columns)
	}
	rows = append(rows, added)
	return Section(page, name, format(append(rows, sums(rows[1:]))))
}

const inAll = "in all"

// sectionOf returns the text of a section of a page.
func sectionOf(page, name string) string {
	_, rest, _ := strings.Cut(page, "<!-- "+name+" -->\n")
	text, _, _ := strings.Cut(rest, "<!-- /"+name+" -->\n")
	return text
}

// tableOf returns the rows of the table in a section, the columns' names first, without the sums.
func tableOf(text string) (rows [][]string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if cells[0] != inAll {
			rows = append(rows, cells)
		}
	}
	return rows
}

// sums returns the last row of a table.
func sums(rows [][]string) []string {
	all := make([]string, len(rows[0]))
	all[0] = inAll
	for i := 1; i < len(all); i++ {
		n, d, numbers, durations := 0, time.Duration(0), true, true
		for _, r := range rows {
			one, err := strconv.Atoi(r[i])
			numbers = numbers && err == nil
			long, errLong := time.ParseDuration(r[i])
			durations = durations && errLong == nil
			n, d = n+one, d+long
		}
		switch {
		case numbers:
			all[i] = strconv.Itoa(n)
		case durations:
			all[i] = d.String()
		}
	}
	return all
}

func format(rows [][]string) string {
	var b strings.Builder
	for i, r := range rows {
		b.WriteString("| " + strings.Join(r, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(r)) + "|\n")
		}
	}
	return b.String()
}
