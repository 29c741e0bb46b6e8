package locks

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

// lease returns the name of a lease of kazoo.
func lease(i int) string { return fmt.Sprintf("%032x", i) }

// Kazoo's semaphores are told from other directories whose children have such names.
func TestKazooSemaphores(t *testing.T) {
	tree, top := newTree(t)
	plant(t, top+"/pool-__lock__/"+lease(9)+"__lock__0000000003", "c") // before the leases, which are not its contender's
	for p, data := range map[string]string{
		"/pool":             "3",
		"/pool/" + lease(1): "a",
		"/pool/" + lease(2): "b",
		"/pool/note":        "",
		"/pool-__lock__/" + lease(3) + "__lock__0000000004": "d",
		"/shared":              "text",
		"/shared/" + lease(1):  "a",
		"/shared-__lock__/x":   "",
		"/barrier/" + lease(1): "",
		"/barrier/ready":       "",
		"/users":               "7 of them",
		"/users/" + lease(1):   "",
		"/free":                "3",
		"/locked/" + lease(1):  "",
		"/locked/" + lease(1) + "__lock__0000000000": "",
	} {
		plant(t, top+p, data)
	}
	for dir, want := range map[string]string{
		"/pool":    "kazoo-semaphore 3: a true, b true, c false, d false",
		"/shared":  "kazoo-semaphore 0: a true",
		"/barrier": " 0: ",
		"/users":   " 0: ",
		"/free":    " 0: ",
		"/locked":  "mutex 0:  true",
	} {
		l, err := tree.Read(patient(t), top+dir, All)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, c := range l.Contenders {
			all = append(all, fmt.Sprint(c.ID, " ", c.Holds))
		}
		slices.Sort(all[:len(l.Holders())]) // planted in any order
		if got := fmt.Sprintf("%s %d: %s", l.Kind, l.Limit, strings.Join(all, ", ")); got != want {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
	found, err := tree.Walk(patient(t), top, Bounds{16, 1000})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/locked mutex", "/pool kazoo-semaphore", "/shared kazoo-semaphore"}
	if got := paths(found, top); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// A contender that has made its lease holds it, although it has not left the gate yet.
func TestKazooGate(t *testing.T) {
	tree, top := newTree(t)
	plant(t, top+"/pool", "3")
	plant(t, top+"/pool-__lock__", "")
	gate := top + "/pool-__lock__/"
	s := testserver.Session(t, testserver.Connect(t, testserver.Server(t).Addr(0)))
	for _, p := range []string{gate + lease(1) + "__lock__0000000000", top + "/pool/" + lease(1), gate + lease(2) + "__lock__0000000001"} {
		enter(t, s, p, strings.TrimPrefix(p, top))
	}
	for _, detail := range []Detail{Holders, All} {
		l, err := tree.Read(patient(t), top+"/pool", detail)
		if err != nil {
			t.Fatal(err)
		}
		if len(l.Contenders) != 2 || len(l.Holders()) != 1 || l.Holders()[0].Node != lease(1) || l.Holders()[0].Client != ClientKazoo {
			t.Errorf("%+v", l.Contenders)
		}
	}
}
