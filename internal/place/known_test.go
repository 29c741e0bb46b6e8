package place

import (
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/internal/watches"
)

// What a hook, or an observer, gets of a node that is watched is a copy: others go by the data.
func TestKnownIsCopied(t *testing.T) {
	w := watches.Seen([]byte("web-3"), &zk.Stat{EphemeralOwner: 7}, core.WatchPending)
	n, _ := knownOf(w)()
	n.Data[0] = 'x'
	if n, ok := knownOf(w)(); string(n.Data) != "web-3" || n.ID != "web-3" || n.Session != 7 || !ok {
		t.Errorf("%+v, %v", n, ok)
	}
	dir := testserver.Path(t)
	p := newProcess(t, dir, Request{Data: []byte("web-3")})
	l := p.hold(t)
	for range 2 { // both watch the node, and share what it says
		first, err := p.q.Line(mutexKind).Next(expect.Patient(t))
		expect.NoError(t, err)
		if string(first.Data) != "web-3" {
			t.Errorf("%q", first.Data)
		}
		first.Data[0] = 'x'
	}
	giveBack(t, l)
}
