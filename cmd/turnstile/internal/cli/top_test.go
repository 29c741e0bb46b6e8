package cli

import (
	"context"
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// Without a terminal, top prints a table each round, the busiest lock first.
func TestTop(t *testing.T) {
	servers(t, func(t *testing.T, w *world) {
		plantLocks(t, w)
		got := w.call(t.Context(), "top", "-n", "1", w.top)
		got.want(t, 0)
		lines := strings.Split(got.stdout, "\n")
		if !strings.HasPrefix(lines[0], "turnstile top "+w.top) || !strings.Contains(lines[0], "9 locks in use, 8 held, 7 waiters") ||
			!strings.Contains(lines[1], "requests in the last round, one every 2s") || !strings.HasPrefix(lines[4], w.top+"/invoice ") && !strings.HasPrefix(lines[4], w.top+"/mixed ") {
			t.Errorf("stdout:\n%s", got.stdout)
		}
		r := w.begin(t, "", "top", "--json", "--interval", "100ms", "--rate", "1000", w.top)
		r.prints(t, "}\n")
		w.own(t, "python/"+kazoo+"__lock__0000000001", "worker-8")
		zktest.Eventually(t, testserver.Patience, "the change", func() bool {
			for _, line := range strings.Split(strings.TrimSpace(r.out.String()), "\n") {
				var j topJSON
				if json.Unmarshal([]byte(line), &j) == nil && len(j.Locks) > 0 && j.Locks[0].Path == w.top+"/python" && j.Locks[0].Rate > 0 && j.Requests > 0 && j.Complete {
					return true
				}
			}
			return false
		})
		r.stop(interrupted{syscall.SIGTERM})
		if code := r.end(t); code != codeSignal+int(syscall.SIGTERM) || r.err.String() != "" {
			t.Errorf("status %d, %s", code, r.err)
		}
	})
}

// view returns a top with a screen that is not a terminal.
func (w *world) view(t *testing.T, keys chan byte, size func() (int, int)) (*topView, *screenBuffer) {
	t.Helper()
	out := &screenBuffer{}
	m := w.manager(t)
	tree := locks.NewTree(m, 0)
	o := topOptions{interval: 100 * time.Millisecond, rate: 1000, bounds: locks.Bounds{Depth: 16, Nodes: 1000}}
	return &topView{
		a: &App{Out: out}, o: o, m: m, t: tree, prefix: w.top,
		scanner: locks.NewScanner(tree, w.top, o.bounds),
		screen:  &screen{out: out, size: size, keys: keys},
	}, out
}

// On a terminal, top draws a page that fits, follows the terminal's size, and ends with a key. It goes on when
// its session is lost.
func TestTopScreen(t *testing.T) {
	srv := zktest.Start(t)
	w := newWorld(t, srv.Addr(), "/test")
	plantLocks(t, w)
	keys, sizes := make(chan byte), make(chan [2]int, 1)
	size := [2]int{60, 8}
	v, out := w.view(t, keys, func() (int, int) {
		select {
		case size = <-sizes:
		default:
		}
		return size[0], size[1]
	})
	done := make(chan error, 1)
	go func() { done <- v.run(t.Context()) }()
	shows := func(text string) {
		t.Helper()
		zktest.Eventually(t, testserver.Patience, text, func() bool { return strings.Contains(lastPage(out), text) })
	}
	shows("PATH  ")
	shows("/test/invoice")
	page := lastPage(out)
	lines := strings.Split(page, escLine)
	if last := strings.TrimSuffix(lines[len(lines)-1], escRest); len(lines) != 8 || !strings.HasPrefix(lines[0], "turnstile top") || last != "and 6 more locks" {
		t.Errorf("on a terminal of 8 lines:\n%s", page)
	}
	for _, l := range lines {
		if n := columns(strings.TrimSuffix(l, escRest)); n > 60 {
			t.Errorf("a line of %d characters on a terminal of 60: %q", n, l)
		}
	}
	if strings.Contains(page, "/test/stuck") {
		t.Errorf("more locks than fit:\n%s", page)
	}
	sizes <- [2]int{200, 40}
	shows("/test/stuck")
	ctx, cancel := context.WithTimeout(t.Context(), testserver.Patience)
	defer cancel()
	if err := srv.Expire(ctx, testserver.Session(t, v.m).ID()); err != nil {
		t.Fatal(err)
	}
	w.own(t, "new/"+uuidA+"lock-0000000000", dataA)
	shows("/test/new")
	srv.Refuse(true)
	srv.Disconnect()
	shows("NO CONNECTION")
	srv.Heal()
	shows("requests in the last round")
	keys <- 'x'
	keys <- 'q'
	if err := <-done; err != nil {
		t.Errorf("ended with %v", err)
	}
}

// lastPage returns what the screen shows.
func lastPage(out *screenBuffer) string {
	text := out.String()
	_, page, _ := strings.Cut(text[max(0, strings.LastIndex(text, escHome)):], escHome)
	return page
}

// The page has as many locks as fit below its headings, and a line for the others. Without a terminal they are 20, or those
// that were asked for.
func TestTopLimit(t *testing.T) {
	for _, c := range []struct{ locks, rows, height, want int }{
		{10, 0, 14, 10}, {10, 0, 13, 8}, {10, 0, 8, 3}, {10, 0, 3, 1}, {10, 5, 24, 5}, {10, 20, 13, 8}, {0, 0, 24, 1},
		{10, 0, 0, 10}, {30, 0, 0, 20}, {30, 25, 0, 25},
	} {
		v := &topView{a: &App{}, o: topOptions{rows: c.rows}, rows: make([]locks.Row, c.locks)}
		if c.height > 0 {
			v.screen = &screen{size: func() (int, int) { return 80, c.height }}
		}
		if got := v.limit(); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
