package session_test

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
)

// NearestACL returns the list of the nearest node that exists, also above the chroot. A client without ADMIN does not see
// the hashes of digests, and one without READ and ADMIN sees nothing.
func TestNearestACL(t *testing.T) {
	ctx, root, servers := patient(t), testserver.Path(t), testserver.Server(t).ConnectString()
	user := zk.DigestACL(zk.PermAll, "user", "secret")
	all := append(zk.DigestACL(zk.PermRead, "reader", "secret"), user...)
	_, err := testserver.Admin(t).Create(root, nil, 0, all)
	must(t, err)
	hidden := []zk.ACL{{Perms: zk.PermRead, Scheme: "digest", ID: "reader:x"}, {Perms: zk.PermAll, Scheme: "digest", ID: "user:x"}}
	for identity, want := range map[string][]zk.ACL{"user:secret": all, "reader:secret": hidden, "nobody:secret": nil} {
		for chroot, path := range map[string]string{"": root + "/a/b", root: "/", root + "/a": "/b/c"} {
			m := testserver.Connect(t, servers+chroot, session.WithAuth("digest", []byte(identity)))
			at, got, err := (*core.Session)(testserver.Session(t, m)).NearestACL(ctx, path)
			if want == nil {
				wantErr(t, identity, err, zk.ErrNoAuth)
			} else {
				must(t, err)
			}
			if diff := cmp.Diff(want, got); diff != "" || at != root {
				t.Errorf("%s: the list at %s differs (-want +got):\n%s", identity, at, diff)
			}
		}
	}
	s := testserver.Session(t, testserver.Connect(t, servers))
	at, got, err := (*core.Session)(s).NearestACL(ctx, testserver.Path(t))
	must(t, err)
	if diff := cmp.Diff(zk.WorldACL(zk.PermAll), got); diff != "" || at != "/" {
		t.Errorf("the list at %s differs (-want +got):\n%s", at, diff)
	}
	_, _, err = (*core.Session)(s).NearestACL(ctx, "a")
	wantErr(t, "bad path", err, session.ErrInvalid)
}

// SetACL changes the list of nodes that are created from then on, in all ways.
func TestSetACL(t *testing.T) {
	ctx, root := patient(t), testserver.Path(t)
	m := testserver.Connect(t, testserver.Server(t).ConnectString(), session.WithAuth("digest", []byte("user:secret")))
	s, want := testserver.Session(t, m), zk.DigestACL(zk.PermAll, "user", "secret")
	given := zk.AuthACL(zk.PermAll)
	(*core.Manager)(m).SetACL(given)
	given[0] = zk.WorldACL(zk.PermAll)[0]
	must(t, (*core.Session)(s).MakeParents(ctx, root))
	_, err := s.Create(ctx, root+"/created", nil, session.Ephemeral)
	must(t, err)
	_, err = s.Multi(ctx, &zk.CreateRequest{Path: root + "/multi"})
	must(t, err)
	c, err := (*core.Session)(s).StartCreate(ctx, nil, root+"/number", nil, core.EphemeralSequential)
	must(t, err)
	<-c.Done()
	number, err := c.Result()
	must(t, err)
	for _, path := range []string{root, root + "/created", root + "/multi", number} {
		at, got, err := (*core.Session)(s).NearestACL(ctx, path)
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" || at != path {
			t.Errorf("%s: the list at %s differs (-want +got):\n%s", path, at, diff)
		}
	}
}
