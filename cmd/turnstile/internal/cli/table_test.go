package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/ensemble"
)

func TestColumns(t *testing.T) {
	for text, want := range map[string]int{
		"":                   0,
		"request 42":         10,
		"ärger":              5,
		"a\u0308rger":        5, // with an accent of its own
		"在庫ロック":              10,
		"재고":                 4,
		"\u1100\u1161":       2, // a syllable of two parts
		"🔒 orders":           9,
		"ﾊﾝｶｸ":               4,
		"ＦＵＬＬ":               8,
		"\u05e9\u05b8\u05c1": 1,
		"…":                  1,
	} {
		if got := columns(text); got != want {
			t.Errorf("%q takes %d columns, want %d", text, got, want)
		}
	}
}

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

// A server that cannot be used does not move the columns of those below it.
func TestCheckColumns(t *testing.T) {
	one := func(name, problem string) ensemble.Server {
		return ensemble.Server{Name: name, Error: problem, Version: "3.9.4", Role: "follower", Granted: 10_000, Shortest: 4000,
			Read: ensemble.Latency{Rounds: 1, Median: 1, P99: 2}}
	}
	down := ensemble.Server{Name: "zk2.example.org:2181", Error: "down"}
	var out bytes.Buffer
	(&App{Out: &out}).printReport(&ensemble.Report{Servers: []ensemble.Server{one("zk1:2181", ""), down, one("zk3:2181", "")}})
	lines := strings.Split(out.String(), "\n")
	for _, column := range []string{"VERSION", "ROLE", "TIMEOUT", "TICK"} {
		at := strings.Index(lines[0], column)
		for _, i := range []int{1, 3} {
			if line := lines[i]; len(line) <= at || line[at] == ' ' || line[at-1] != ' ' {
				t.Errorf("%s does not begin at %d:\n%s", column, at, &out)
			}
		}
	}
}

// On a terminal, no line is wider than the terminal, so that none scrolls the heading away.
func TestDrawWide(t *testing.T) {
	var out bytes.Buffer
	s := &screen{out: &out, size: func() (int, int) { return 9, 2 }}
	s.draw([]string{"在庫ロック", "abc"})
	if want := escHome + "在庫ロッ" + escLine + "abc" + escRest; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
