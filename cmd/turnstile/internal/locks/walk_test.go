package locks

import (
	"context"
	"fmt"
	"path"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func name(prefix string, sequence int) string {
	return fmt.Sprintf("_c_01234567-89ab-cdef-0123-456789abcdef-%s%010d", prefix, sequence)
}

// plant makes a persistent node and its parents, as an operator would.
func plant(t *testing.T, p, data string) {
	t.Helper()
	admin := testserver.Admin(t)
	if dir := path.Dir(p); dir != "/" {
		if ok, _, err := admin.Exists(dir); err == nil && !ok {
			plant(t, dir, "")
		}
	}
	if _, err := admin.Create(p, []byte(data), 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatalf("plant %s: %v", p, err)
	}
}

func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testserver.Bound())
	t.Cleanup(cancel)
	return ctx
}

// enter makes an ephemeral node.
func enter(t *testing.T, s *session.Session, p, data string) {
	t.Helper()
	if _, err := s.Enter(patient(t), session.NewNode{Dir: path.Dir(p), Name: path.Base(p), Data: []byte(data), Fixed: true}); err != nil {
		t.Fatal(err)
	}
}

// newTree returns the tree of the shared server, below a path of the test's own.
func newTree(t *testing.T) (*Tree, string) {
	t.Helper()
	return NewTree(testserver.Connect(t, testserver.Server(t).Addr(0))), testserver.Path(t)
}

// A walk goes on in the next session when its own is lost.
func TestWalkSessionLost(t *testing.T) {
	srv := zktest.Start(t)
	m := testserver.Connect(t, srv.ConnectString())
	s := testserver.Session(t, m)
	expect.NoError(t, expect.Err(s.Create(patient(t), "/a", nil, session.Persistent)))
	expect.NoError(t, expect.Err(s.Create(patient(t), "/a/"+name("lock-", 0), nil, session.Persistent)))
	held := srv.HoldRequest(zktest.On(zktest.OpGetChildren2, "/a"))
	go func() {
		<-held.Hit()
		_ = srv.Expire(context.Background(), s.ID())
		held.Release()
	}()
	found, err := NewTree(m).Walk(patient(t), "/", 1000)
	if err != nil || len(found.Locks) != 1 {
		t.Errorf("%+v, %v", found, err)
	}
}

// In Curator's layout, a contender that waits at the gate with its lease does not hold it.
func TestCuratorGate(t *testing.T) {
	tree, top := newTree(t)
	plant(t, top+"/locks", "")
	plant(t, top+"/leases", "")
	plant(t, top+"/leases/"+name("lease-", 0), "10.0.0.1")
	m := testserver.Connect(t, testserver.Server(t).Addr(0))
	s := testserver.Session(t, m)
	for _, p := range []string{"/locks/" + name("lock-", 0), "/leases/" + name("lease-", 1)} {
		enter(t, s, top+p, "10.0.0.2")
	}
	plant(t, top+"/locks/"+name("lock-", 1), "10.0.0.3")
	l, err := tree.Read(patient(t), top)
	expect.NoError(t, err)
	var got []string
	for _, c := range l.Contenders {
		got = append(got, fmt.Sprint(c.ID, c.Holder))
	}
	if want := []string{"10.0.0.1true", "10.0.0.2false", "10.0.0.3false"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The servers remove the directory of the gate when it is empty. The holders of a semaphore in Curator's layout
// still hold it. A semaphore of this library whose path ends with "leases" is a lock of its own.
func TestCuratorWithoutGate(t *testing.T) {
	tree, top := newTree(t)
	for dir, data := range map[string]string{"/theirs": "10.0.0.1", "/ours": `{"maxLeases":3}`, "/empty": "10.0.0.1"} {
		plant(t, top+dir, "")
		plant(t, top+dir+"/leases", data)
	}
	plant(t, top+"/theirs/leases/"+name("lease-", 0), "10.0.0.1")
	plant(t, top+"/ours/leases/"+name("lease-", 0), `{"id":"a/1"}`)
	want := map[string]Kind{"/theirs": Curator, "/ours": None, "/ours/leases": Semaphore, "/empty": None}
	for dir, kind := range want {
		l, err := tree.Read(patient(t), top+dir)
		expect.NoError(t, err)
		holders := 1
		if kind == None {
			holders = 0
		}
		if l.Kind != kind || len(l.Holders()) != holders {
			t.Errorf("%s: %v with %d holders, want %v with %d", dir, l.Kind, len(l.Holders()), kind, holders)
		}
	}
}

// A directory without rights is named, and does not end the walk.
func TestWalkNoRights(t *testing.T) {
	tree, top := newTree(t)
	plant(t, top+"/open/"+name("lock-", 0), "")
	closed := path.Join(top, "closed")
	expect.NoError(t, expect.Err(testserver.Admin(t).Create(closed, nil, 0, zk.WorldACL(zk.PermAdmin))))
	found, err := tree.Walk(patient(t), top, 1000)
	if err != nil || len(found.Locks) != 1 || len(found.Unread) != 1 || found.Unread[0].Path != closed {
		t.Errorf("%+v, %v", found, err)
	}
}

// A walk stops after some directories, and names what is left.
func TestWalkBounds(t *testing.T) {
	tree, top := newTree(t)
	for i := range 3 {
		plant(t, fmt.Sprintf("%s/%d/x/%s", top, i, name("lock-", 0)), "")
	}
	found, err := tree.Walk(patient(t), top, 5)
	if err != nil || found.Read != 5 || len(found.Unread) != 1 || found.Unread[0].Path != top+"/1/x" {
		t.Errorf("%+v, %v", found, err)
	}
}
