package decide

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// row is a line of the table.
type row struct{ in, hears, then, does, caller string }

// rows returns the table of the code. Inputs that can come in every state are listed once.
func rows() (out []row) {
	for s, all := range moves {
		for in, m := range all {
			out = append(out, rowOf(State(s).String(), in, m))
		}
	}
	for _, in := range []Input{Lost, Quit} {
		m, _ := Step(Outside, in)
		out = append(out, rowOf("any", in, m))
	}
	return sorted(out)
}

func rowOf(state string, in Input, m Move) row {
	return row{state, in.String(), m.To.String(), m.Do.String(), m.Out.String()}
}

func sorted(rows []row) []row {
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(cmp.Compare(a.in, b.in), cmp.Compare(a.hears, b.hears)) })
	return rows
}

// The table of the package documentation is that of the code.
func TestTable(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(doc), "for the caller\n")
	table, _, _ = strings.Cut(table, "//\n")
	var documented []row
	line := regexp.MustCompile(`^//\t(.{10})(.{12})(.{10})(.{8})(.*)$`)
	for _, text := range strings.Split(strings.TrimSpace(table), "\n") {
		f := line.FindStringSubmatch(fmt.Sprintf("%-44s", text))
		if f == nil {
			t.Fatalf("not a line of the table: %q", text)
		}
		for i := range f {
			f[i] = strings.TrimSpace(f[i])
		}
		documented = append(documented, row{f[1], f[2], f[3], f[4], f[5]})
	}
	if diff := gocmp.Diff(rows(), sorted(documented), gocmp.AllowUnexported(row{})); diff != "" {
		t.Errorf("the code (-) and the documentation (+) differ:\n%s", diff)
	}
}

// Every state can be reached, can be left for good, and hears nothing once it was left. A place that was
// granted never contends again.
func TestStep(t *testing.T) {
	reached := map[State]bool{Outside: true}
	for again := true; again; {
		again = false
		for s := range reached {
			for in := range Input(len(inputs)) {
				if m, ok := Step(s, in); ok && !reached[m.To] {
					reached[m.To], again = true, true
				}
			}
		}
	}
	if len(reached) != len(states) {
		t.Errorf("of %d states these can be reached: %v", len(states), reached)
	}
	for in := range Input(len(inputs)) {
		if m, ok := Step(Left, in); ok {
			t.Errorf("a place that was left hears %v, and is %v then", in, m.To)
		}
		used := false
		for s := range State(len(states)) {
			m, ok := Step(s, in)
			used = used || ok
			if ok && (s == Holding || s == Keeping) && m.To != Holding && m.To != Keeping && m.To != Left {
				t.Errorf("a place that is %v hears %v, and is %v then", s, in, m.To)
			}
			if ok && m.To == Left && in != Replaced && m.Do != Remove {
				t.Errorf("a place that is %v hears %v, and is left with its node", s, in)
			}
		}
		if !used {
			t.Errorf("%v comes in no state", in)
		}
	}
}
