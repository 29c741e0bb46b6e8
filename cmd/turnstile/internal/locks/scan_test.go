package locks

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

// A scanner reads all directories in the first round, and as many as it may in the next ones: the wanted
// ones first, and all of them in the end. It finds new locks, and forgets those that are gone.
func TestScanner(t *testing.T) {
	tree, top := newTree(t)
	lock := func(i int) string { return fmt.Sprintf("%s/%d", top, i) }
	for i := range 6 {
		plant(t, lock(i)+"/"+name("lock-", 0), "")
	}
	s := NewScanner(tree, top, Bounds{16, 1000})
	round := func(most int, first ...string) int64 {
		t.Helper()
		before := tree.Requests()
		if err := s.Round(patient(t), most, first); err != nil {
			t.Fatal(err)
		}
		return tree.Requests() - before
	}
	if n := round(0); n != 7+6 || len(s.Rows()) != 6 {
		t.Errorf("%d requests, %d rows", n, len(s.Rows()))
	}
	plant(t, lock(5)+"/"+name("lock-", 1), "")
	plant(t, lock(5)+"/"+name("lock-", 2), "")
	if n := round(2, lock(5)); n != 2 {
		t.Errorf("%d requests for two directories", n)
	}
	if r := s.Rows()[0]; r.Path != lock(5) || r.Rate <= 0 || r.Waiting() != 2 {
		t.Errorf("the busiest is %+v", r)
	}
	testserver.Delete(t, lock(0), name("lock-", 0))
	testserver.Delete(t, lock(0))
	plant(t, lock(9)+"/"+name("lock-", 0), "")
	for range 40 {
		round(2)
	}
	var paths []string
	for _, r := range s.Rows() {
		paths = append(paths, r.Path)
	}
	slices.Sort(paths)
	if want := []string{lock(1), lock(2), lock(3), lock(4), lock(5), lock(9)}; !slices.Equal(paths, want) {
		t.Errorf("%q, want %q", paths, want)
	}
	if sum := s.Scanned(); sum.Directories != 7 || sum.Full || sum.Missing || time.Since(sum.Oldest) > testserver.Patience {
		t.Errorf("%+v", sum)
	}
}
