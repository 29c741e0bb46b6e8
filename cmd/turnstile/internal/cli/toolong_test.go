package cli

import (
	"path"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/zktest"
)

// A list never arrives: each connection breaks while it is awaited, as that of a session does which cannot wait any longer.
// The commands give up after three of them, and say so.
func TestListNeverArrives(t *testing.T) {
	w := newWorld(t, zktest.Start(t).Addr(), "/test")
	p := zktest.StartProxy(t, w.addr)
	w.own(t, "invoice/"+uuidA+"lock-0000000000", dataA)
	dir := path.Join(w.top, "invoice")
	list := zktest.On(zktest.OpGetChildren2, dir)
	const cuts = 18
	for range cuts {
		p.CutAfterCommit(list)
	}
	w.addr = p.Addr()
	said := []string{"the list of the children of " + dir, "--timeout"}
	for _, args := range [][]string{
		{"ls", dir}, {"show", dir}, {"break", dir}, {"resize", "--limit", dir}, {"resize", dir, "3"},
	} {
		p.ResetRequests()
		w.call(t.Context(), args...).want(t, codeConnect, said...)
		if n := p.Count(list); n != 3 {
			t.Errorf("%s asked for the list %d times, want 3", args[0], n)
		}
	}
	// Three are left, for the first look. Then the list comes.
	watch := w.begin(t, "", "watch", dir)
	watch.prints(t, "holds", "held")
	if n := strings.Count(watch.err.String(), said[0]); n != 1 {
		t.Errorf("watch says it %d times: %s", n, watch.err)
	}
}
