package session_test

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
)

// A client without ADMIN does not see the hashes of digests in a list, and one without READ and ADMIN sees nothing.
func TestACL(t *testing.T) {
	ctx, root, servers := patient(t), testserver.Path(t), testserver.Server(t).ConnectString()
	user := zk.DigestACL(zk.PermAll, "user", "secret")
	all := append(zk.DigestACL(zk.PermRead, "reader", "secret"), user...)
	_, err := testserver.Admin(t).Create(root, nil, 0, all)
	must(t, err)
	hidden := []zk.ACL{{Perms: zk.PermRead, Scheme: "digest", ID: "reader:x"}, {Perms: zk.PermAll, Scheme: "digest", ID: "user:x"}}
	for identity, want := range map[string][]zk.ACL{"user:secret": all, "reader:secret": hidden, "nobody:secret": nil} {
		for chroot, path := range map[string]string{"": root, root: "/"} {
			m := testserver.Connect(t, servers+chroot, session.WithAuth("digest", []byte(identity)))
			got, err := testserver.Session(t, m).ACL(ctx, path)
			if want == nil {
				wantErr(t, identity, err, zk.ErrNoAuth)
			} else {
				must(t, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: the list differs (-want +got):\n%s", identity, diff)
			}
		}
	}
	s := testserver.Session(t, testserver.Connect(t, servers))
	_, err = s.ACL(ctx, testserver.Path(t)+"/none")
	wantErr(t, "no such node", err, zk.ErrNoNode)
	_, err = s.ACL(ctx, "a")
	wantErr(t, "bad path", err, session.ErrInvalid)
}

// WithACL sets the list of nodes that are created in all ways.
func TestWithACL(t *testing.T) {
	ctx, root := patient(t), testserver.Path(t)
	given := zk.AuthACL(zk.PermAll)
	m := testserver.Connect(t, testserver.Server(t).ConnectString(), session.WithAuth("digest", []byte("user:secret")),
		session.WithACL(given...))
	given[0] = zk.WorldACL(zk.PermAll)[0]
	s, want := testserver.Session(t, m), zk.DigestACL(zk.PermAll, "user", "secret")
	must(t, makeDir(ctx, s, root))
	_, err := makeNode(ctx, s, root+"/created", nil)
	must(t, err)
	_, err = s.Multi(ctx, &zk.CreateRequest{Path: root + "/multi"})
	must(t, err)
	number, err := makeNumbered(ctx, s, root+"/number", nil)
	must(t, err)
	for _, path := range []string{root, root + "/created", root + "/multi", number} {
		got, err := s.ACL(ctx, path)
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: the list differs (-want +got):\n%s", path, diff)
		}
	}
}
