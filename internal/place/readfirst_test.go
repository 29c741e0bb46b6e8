package place

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A node of the same session that is about to be deleted does not keep a try from entering, since it may be gone by then.
func TestReadFirstOwnLeaves(t *testing.T) {
	dir := testserver.Path(t)
	proxy := testserver.Proxy(t)
	m := testserver.Connect(t, proxy.Addr(), session.WithTimeout(testserver.Patience))
	q, err := New((*core.Manager)(m), dir)
	expect.NoError(t, err)
	r := Request{Kind: mutexKind, Terms: &Terms{ReadFirst: true}}
	l, err := q.Acquire(expect.Patient(t), r)
	expect.NoError(t, err)
	try := func() (creates int) {
		before := proxy.Count(zktest.On(zktest.OpCreate, dir))
		_, err := q.TryAcquire(expect.Patient(t), r)
		wantBusy(t, err)
		return proxy.Count(zktest.On(zktest.OpCreate, dir)) - before
	}
	if n := try(); n != 0 {
		t.Errorf("beside a holder: %d nodes", n)
	}
	(*core.Session)(testserver.Session(t, m)).Leaving(l.Path())
	if n := try(); n != 1 {
		t.Errorf("beside one that leaves: %d nodes", n)
	}
	expect.NoError(t, l.Release(expect.Patient(t), Done))
}
