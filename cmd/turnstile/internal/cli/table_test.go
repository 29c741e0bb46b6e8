package cli

import (
	"slices"
	"strings"
	"testing"
)

// A character is never cut in half, and an accent stays with its character.
func TestShort(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"abcdef", 6, "abcdef"}, {"abcdef", 5, "abcd…"}, {"在庫ロック", 10, "在庫ロック"}, {"在庫ロック", 9, "在庫ロッ…"},
		{"在庫ロック", 8, "在庫ロ…"}, {"a\u0308b\u0308c\u0308", 3, "a\u0308b\u0308c\u0308"}, {"a\u0308b\u0308c\u0308", 2, "a\u0308…"},
		{"\x1b[1m", 5, `\u00…`},
	} {
		if got := short(c.text, c.n); got != c.want || columns(got) > c.n {
			t.Errorf("%q in %d columns: %q, want %q", c.text, c.n, got, c.want)
		}
	}
}

// Columns begin at the same place in all rows, also behind wide characters and in rows that end early.
func TestTable(t *testing.T) {
	table := newTable("PATH", "HOLDER", "WAITING")
	table.row("/locks/在庫", "a\u0308rger", "1")
	table.row("/x", "a sentence that is longer than all holders")
	table.row("/locks/🔒", "", "")
	table.row("/locks/stock", "web-3/4711", "2")
	want := []string{
		"PATH          HOLDER      WAITING",
		"/locks/在庫   a\u0308rger       1",
		"/x            a sentence that is longer than all holders",
		"/locks/🔒",
		"/locks/stock  web-3/4711  2",
	}
	if got := table.lines(); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
