package place

import (
	"path"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/kinds"
	"github.com/turnstile-go/turnstile/session"
)

// The reply to a create is lost, and a slow server carries the create out after the lookup has found
// nothing. So there is a second node of ours. It blocks neither us nor other contenders.
func TestLateTwinIsRemoved(t *testing.T) {
	dir := testserver.Path(t)
	m := testserver.Connect(t, testserver.Server(t).Addr(0), session.WithTimeout(20*time.Second))
	q, err := New((*core.Manager)(m), dir)
	if err != nil {
		t.Fatal(err)
	}
	s := testserver.Session(t, m)
	if err := (*core.Session)(s).MakeParents(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	r := Request{Kind: mutexKind}
	if err := r.complete(); err != nil {
		t.Fatal(err)
	}
	a := newAttempt(q, (*core.Session)(s), &r, &Entry{})
	a.doubt = true
	name := path.Join(dir, kinds.NodeName(a.id, kinds.PrefixLock, 1, false))
	if _, err := testserver.Admin(t).Create(name, nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	if out, err := a.run(t.Context()); out != decide.Granted || err != nil {
		t.Fatalf("outcome %d, %v", out, err)
	}
	granted := newTurn(t.Context(), a, nil)
	l := granted.Begin(t.Context())
	go granted.Guard()
	testserver.WaitChildren(t, dir, 1)
	if err := l.Release(t.Context(), Done); err != nil {
		t.Fatal(err)
	}
	testserver.WaitChildren(t, dir, 0)
}
