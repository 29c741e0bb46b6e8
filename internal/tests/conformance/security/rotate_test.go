package security

import (
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// The password of the scheme digest is changed in the steps of docs/operations.md, while processes of the step before and
// of the next one use the same lock. At the end the old password opens nothing.
func TestRotatedPassword(t *testing.T) {
	const before, after = "locks:before", "locks:after"
	top := testserver.Path(t)
	dir := top + "/invoice"
	open := func(identities ...string) *zklock.Mutex {
		opts := []session.Option{session.WithACL(zk.AuthACL(zk.PermAll)...)} // all identities of the connection
		for _, id := range identities {
			opts = append(opts, session.WithAuth("digest", []byte(id)))
		}
		mx, err := zklock.New(testserver.Connect(t, testserver.Server(t).ConnectString(), opts...), dir)
		expect.NoError(t, err)
		return mx
	}
	// Each of two processes gets the lock behind the other.
	together := func(what string, a, b *zklock.Mutex) {
		t.Helper()
		for _, pair := range [][2]*zklock.Mutex{{a, b}, {b, a}} {
			expect.NoError(t, pair[0].Lock(expect.Patient(t)))
			got := make(chan error, 1)
			go func() { got <- pair[1].Lock(expect.Patient(t)) }()
			for queued := 0; queued < 2; {
				all, err := pair[0].Contenders(expect.Patient(t))
				expect.NoError(t, err)
				queued = len(all)
			}
			expect.NoError(t, pair[0].Unlock())
			if err := <-got; err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			expect.NoError(t, pair[1].Unlock())
		}
	}
	admin := plain(t, before, after)
	setACL := func() {
		t.Helper()
		for _, node := range tree(t, admin, top) {
			_, err := admin.SetACL(node, zk.DigestACL(zk.PermAll, "locks", "after"), -1)
			expect.NoError(t, err)
		}
	}

	old, both, fresh := open(before), open(before, after), open(after)
	together("the old password and both", old, both)
	setACL()
	together("both twice", both, open(before, after))
	together("both and the new one", both, fresh)
	setACL()
	together("the new one twice", fresh, open(after))
	expect.Match(t, "the old password", old.Lock(expect.Patient(t)), zk.ErrNoAuth)
}
