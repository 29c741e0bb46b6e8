package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/exampletest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

func TestRun(t *testing.T) {
	longtest.InCI(t)
	var out bytes.Buffer
	expect.NoError(t, run(t.Context(), &out, nil))
	const want = `red    has the orders 1 2 3 4 7
green  has the orders 8 10
blue   has the orders 0 5 6 9 11
2 processes took each lock 5 times, never both at once
when blue was added, 325 of 1000 paths moved to it, and 0 elsewhere
while it was added, never both at once
`
	if out.String() != want {
		t.Errorf("it says\n%s", out.String())
	}
}

func TestRunRefuses(t *testing.T) {
	server := exampletest.Server(t)
	for _, ensembles := range [][]ensemble{{{"a", server}}, {{"a", server}, {"a", server}}} {
		if err := run(t.Context(), new(bytes.Buffer), ensembles); err == nil {
			t.Errorf("no error with %v", ensembles)
		}
	}
	for _, s := range []string{"", "h:2181", "=h:2181", "a="} {
		if _, err := parseEnsemble(s); err == nil {
			t.Errorf("%q was parsed", s)
		}
	}
}

// TestPlaceMovesLittle is that an ensemble more takes its share of the paths, about as many
// from each, and that no other path moves; in whatever order the names are.
func TestPlaceMovesLittle(t *testing.T) {
	before := []string{"a", "b", "c"}
	now := []string{"d", "c", "b", "a"}
	const paths = 4000
	taken := map[string]int{}
	for i := range paths {
		p := fmt.Sprint("/locks/", i)
		old, moved := place(p, before), place(p, now)
		if place(p, []string{"c", "b", "a"}) != old {
			t.Fatalf("%s depends on the order of the names", p)
		}
		switch {
		case moved == "d":
			taken[old]++
		case moved != old:
			t.Fatalf("%s has moved from %s to %s", p, old, moved)
		}
	}
	for _, name := range before {
		// A twelfth each; the hash is fixed, and so is the number.
		if n := taken[name]; n < paths/15 || n > paths/9 {
			t.Errorf("%d of %d were taken from %s", n, paths, name)
		}
	}
}

// TestPlaceStays is that the hash is the same in every version of the program.
func TestPlaceStays(t *testing.T) {
	names := []string{"red", "green", "blue"}
	var got []string
	for i := range 6 {
		got = append(got, place(pathOf(i), names))
	}
	if s := strings.Join(got, " "); s != "blue red red red red blue" {
		t.Errorf("the first paths are in %s", s)
	}
}

func TestEnds(t *testing.T) {
	longtest.InCI(t)
	// Two ensembles that are one server, in two chroots.
	for _, chroot := range []string{"/red", "/blue"} {
		expect.NoError(t, expect.Err(testserver.Admin(t).Create(chroot, nil, 0, zk.WorldACL(zk.PermAll))))
	}
	dir := map[string]string{"red": "/red", "blue": "/blue"}[place(pathOf(0), []string{"red", "blue"})] + pathOf(0)
	exampletest.Ends(t, dir, func(addr string) []string {
		return []string{"-zk", "red=" + addr + "/red", "-zk", "blue=" + addr + "/blue"}
	})
}
