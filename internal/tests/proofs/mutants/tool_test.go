package mutants

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const example = `//go:build !plan9

// Package p is an example.
package p

import "context"

const gap = 5

// grant has a comment.
func (c *contender) grant(ctx context.Context) (int, error) {
	if err := c.s.Err(); err != nil { // asked last
		return 0, err
	}
	c.enter(ctx)
	switch {
	case c.gone && c.waits:
		return 1, nil
	case c.free:
		c.tell(gap)
		c.tell(gap + 1)
	}
	select {
	case <-c.own:
		c.tell(3)
	case <-ctx.Done():
	}
	c.at = c.next(ctx)
	c.leave()
	return 2, nil
}

func (h Holds[L]) all() bool { return h.one || h.two }
`

// Each operation does what it says, and one whose place is not there once says what there is.
func TestOperations(t *testing.T) {
	for _, c := range []struct {
		name, decl string
		do         operation
		want       string // a part of the file, or of the error
	}{
		{"always", "(*contender).grant", always(test("c.free")), "case (true || (c.free)):"},
		{"an operand", "(*contender).grant", never(test("waits")), "case c.gone && (false && (c.waits)):"},
		{"a whole condition", "(*contender).grant", negated(test("gone", "waits")), "case !(c.gone && c.waits):"},
		{"by the statement before a condition", "(*contender).grant", never(test("s.Err()")), "false && (err != nil)"},
		{"a returned operand", "Holds.all", always(test("h.two")), "return h.one || (true || (h.two))"},
		{"an argument", "(*contender).grant", put(argument("c.next", "ctx"), "nil"), "c.at = c.next(nil)"},
		{"a result", "(*contender).grant", put(result("2"), "3"), "return 3, nil"},
		{"a value", "(*contender).grant", put(value("c.at"), "7"), "c.at = 7"},
		{"a constant", "gap", put(value("gap"), "6"), "const gap = 6"},
		{"a statement", "(*contender).grant", without(doing("leave()")), "if false {\n\t\tc.leave()\n\t}"},
		{"two statements", "(*contender).grant", swapped(doing("enter()"), doing("leave()")), "c.leave()\n\tswitch"},
		{"a case of a select", "(*contender).grant", deaf("c.own"), "case <-noChannel(c.own):"},
		{"a case of a select needs help", "(*contender).grant", deaf("Done()"), "func noChannel[C any](C) (none C) {"},
		{"both", "(*contender).grant", both(without(doing("leave()")), put(result("2"), "3")), "return 3, nil"},
		{"no comments but those of the build", "gap", put(value("gap"), "6"), "//go:build !plan9\n"},

		{"no place", "(*contender).grant", always(test("c.held")), `test ["c.held"]: want one, found 0`},
		{"two places", "(*contender).grant", put(argument("c.tell", "gap"), "0"), "found 2\n\tp.go:20: gap\n\tp.go:21: gap + 1"},
		{"not a call", "(*contender).grant", without(doing("c.free()")), "found 0"},
		{"no function", "(*contender).gran", without(doing("leave()")), "has no (*contender).gran"},
		{"not in one list", "(*contender).grant", swapped(doing("leave()"), doing("tell()", "+")), "are not in one list"},
		{"no such case", "(*contender).grant", deaf("c.held"), `reception ["c.held"]: want one, found 0`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte(example), 0o600); err != nil {
				t.Fatal(err)
			}
			got := apply(dir, c.decl, c.do)
			if !strings.Contains(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if strings.Contains(got, "comment") {
				t.Error("a comment has stayed, which can be in a wrong place")
			}
		})
	}
}

// apply returns the file after an operation, or the error.
func apply(dir, decl string, do operation) string {
	s, in, err := make(sources).declares(dir, decl)
	if err == nil {
		_, _, err = do.changed(s, in)
	}
	if err != nil {
		return err.Error()
	}
	text, err := s.print()
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Only a test that fails has noticed, by a failure or a panic: not one that was not built, or that has taken too long.
func TestComplaint(t *testing.T) {
	for _, c := range []struct {
		out, said string
		failed    bool
	}{
		{"--- FAIL: TestA (0.01s)\n    a_test.go:3: covered: 7 states\n    a_test.go:4: two holders\nFAIL\n", "a_test.go:4: two holders", true},
		{"--- FAIL: TestA (0.01s)\n    --- FAIL: TestA/b (0.01s)\n        a.go:4: two\nFAIL\n", "a.go:4: two", true},
		{"panic: runtime error: nil\n\ngoroutine 7 [running]:\n", "panic: runtime error: nil", true},
		{"panic: test timed out after 2m0s\n", "panic: test timed out after 2m0s", false},
		{"a.go:7:2: declared and not used: n\nFAIL\tp [build failed]\n", "", false},
		{"--- FAIL: TestB (0.01s)\n    b_test.go:4: another\nFAIL\n", "", false},
	} {
		if said, failed := complaint(c.out, "TestA/b"); said != c.said || failed != c.failed {
			t.Errorf("%q, %v of\n%s\nwant %q, %v", said, failed, c.out, c.said, c.failed)
		}
	}
}
