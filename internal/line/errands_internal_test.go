package line

import (
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/goroutines"
)

// One goroutine calls thousands of functions that come at once, in order. If some of them end it, others go on.
func TestErrands(t *testing.T) {
	for _, end := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) { callThousands(t, end) })
	}
}

func callThousands(t *testing.T, end bool) {
	var e Errands
	most, n := 0, 0
	for i := range 8000 {
		e.Add(func() {
			if i%100 == 0 {
				most = max(most, goroutines.In("line.(*Errands).run"))
			}
			if i != n {
				t.Errorf("%d comes after %d others", i, n)
			}
			if n++; end && i%1000 == 0 {
				runtime.Goexit()
			}
		})
	}
	synctest.Wait()
	if n != 8000 || most != 1 && !end || e.running {
		t.Errorf("%d calls, %d goroutines, running %v", n, most, e.running)
	}
}
