package cli

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLaterWriter(t *testing.T) {
	t.Parallel()
	var to strings.Builder
	var want strings.Builder
	w := newLaterWriter(&to)
	for i := range 100 {
		fmt.Fprintln(w, i)
		fmt.Fprintln(&want, i)
	}
	w.close()
	fmt.Fprintln(w, "too late")
	if to.String() != want.String() {
		t.Errorf("wrote %q", to.String())
	}
}

// A reader that does not read stops no writer: lines are dropped, and close gives up.
func TestLaterWriterStuck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, to := io.Pipe()
		w := newLaterWriter(to)
		begun := time.Now()
		for i := range 10 * laterLines {
			fmt.Fprintln(w, i)
		}
		if waited := time.Since(begun); waited > 0 {
			t.Errorf("writing took %v", waited)
		}
		w.close()
		if waited := time.Since(begun); waited != laterTime {
			t.Errorf("close took %v", waited)
		}
		r.Close()
	})
}
