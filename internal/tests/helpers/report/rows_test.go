package report

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Each part adds its row. The last row has the sums of what can be added, and is no part.
func TestAddRow(t *testing.T) {
	_, page := repository(t, "# A\n<!-- b -->\n<!-- /b -->\n")
	row := func(what string, n int, took time.Duration) Row {
		return Row{{"what", what}, {"first", what + "1"}, {"seeds", n}, {"took", took}}
	}
	for _, r := range []Row{row("a", 10, time.Minute), row("b", 5, 30*time.Second), row("a", 0, time.Second)} {
		if err := AddRow(page, "b", r); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(Sections(string(text))["b"]) {
		if _, cells, ok := strings.Cut(strings.TrimSpace(line), " | "); ok {
			got = append(got, cells)
		}
	}
	want := []string{
		"what | first | seeds | took |", "a | a1 | 10 | 1m0s |", "b | b1 | 5 | 30s |", "a | a1 | 0 | 1s |", " |  | 15 | 1m31s |",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s\n%s", diff, text)
	}
	if !Dated(Sections(string(text))["b"]) {
		t.Errorf("the section has no date: %s", text)
	}
	if err := AddRow(page, "b", Row{{"what", "c"}}); err == nil {
		t.Error("a row with other columns was added")
	}
}
