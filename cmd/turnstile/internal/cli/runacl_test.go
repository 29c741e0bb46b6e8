//go:build linux || darwin || freebsd

package cli

import (
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// Identities of the tests. A stranger has rights nowhere.
const (
	alice    = "digest:alice:a"
	bob      = "digest:bob:b"
	stranger = "digest:eve:e"
)

// protected returns a directory on which alice has some rights and bob all, and a connection that has both identities.
func protected(t *testing.T, rights int32) (c *zk.Conn, dir string, list []zk.ACL) {
	t.Helper()
	list = append(zk.DigestACL(rights, "alice", "a"), zk.DigestACL(zk.PermAll, "bob", "b")...)
	c = newWorld(t, testserver.Server(t).Addr(0), "/").admin
	for _, identity := range []string{alice, bob} {
		expect.NoError(t, c.AddAuth("digest", []byte(strings.TrimPrefix(identity, "digest:"))))
	}
	dir = testserver.Path(t)
	expect.NoError(t, expect.Err(c.Create(dir, nil, 0, list)))
	return c, dir, list
}

// contenders returns the paths of the contenders of a lock.
func contenders(t *testing.T, c *zk.Conn, lock string) []string {
	t.Helper()
	names, _, err := c.Children(lock)
	expect.NoError(t, err)
	for i, name := range names {
		names[i] = lock + "/" + name
	}
	return names
}

// as calls turnstile with an identity.
func as(t *testing.T, identity string, args ...string) result {
	t.Helper()
	return call(t.Context(), []string{"TURNSTILE_ZK=" + server(t), "TURNSTILE_AUTH=" + identity}, args...)
}

// In a protected tree, run makes nodes like the directory above. Both identities that have rights there share the lock: the
// other one sees the holder, asks for the lock, waits and gets it. A stranger can do nothing of that.
func TestRunInheritsACL(t *testing.T) {
	t.Parallel()
	c, dir, list := protected(t, zk.PermAll)
	lock := dir + "/deep/lock"
	holder := hold(t, "--auth", alice, lock)
	for _, node := range append(contenders(t, c, lock), dir+"/deep", lock) {
		got, _, err := c.GetACL(node)
		if diff := cmp.Diff(list, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", node, err, diff)
		}
	}

	for _, identity := range []string{"", stranger} {
		as(t, identity, "run", "--wait=0", lock, "--", "true").want(t, codeRefused, lock+": ", "READ", "--auth")
		as(t, identity, "run", dir+"/other", "--", "true").want(t, codeRefused, dir+": ", "READ", "--auth")
		as(t, identity, "break", "--force", "--yes", lock).want(t, codeRefused, "READ")
		as(t, identity, "show", lock).want(t, codeRefused, "READ")
		as(t, identity, "resize", lock, "2").want(t, codeRefused, lock+": ", "READ")
	}
	got := as(t, stranger, "run", lock, "--", "true")
	if got.want(t, codeRefused); strings.Contains(got.err, stranger) {
		t.Errorf("the error has the password: %s", got.err)
	}
	if !holder.running() {
		t.Fatal("the holder has ended")
	}
	as(t, bob, "run", "--wait=0", lock, "--", "true").want(t, codeBusy, holder.contender(t))
	waiter := start(t, server(t), "run", "--auth", bob, lock, "--", "true")
	zktest.Eventually(t, patience, "the waiter", func() bool { return len(contenders(t, c, lock)) == 2 })
	as(t, bob, "break", lock).want(t, 0)
	holder.wait(t, codeLost)
	waiter.wait(t, 0)
}

// If a right is missing, run says which ones it needs, and where, and leaves nothing.
func TestRunLacksRights(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rights int32
		flags  []string
		needs  string
	}{
		{zk.PermRead | zk.PermAdmin, nil, "the rights READ, CREATE and DELETE there"},
		{zk.PermAll &^ zk.PermRead &^ zk.PermAdmin, nil, "the right READ there"},
		{zk.PermAll &^ zk.PermWrite, []string{"--slots", "2"}, "the rights READ, WRITE, CREATE and DELETE there"},
	} {
		conn, dir, _ := protected(t, c.rights)
		args := append(append([]string{"run"}, c.flags...), dir, "--", "true")
		as(t, alice, args...).want(t, codeRefused, c.needs, dir+": ")
		if left := contenders(t, conn, dir); len(left) > 0 {
			t.Errorf("%v: %q was made", c.rights, left)
		}
	}
}
