package cli

import (
	"path"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/zktest"
)

// check runs check, and looks for patterns in what it prints.
func (w *world) check(t *testing.T, code int, args []string, patterns ...string) {
	t.Helper()
	got := w.call(t.Context(), append([]string{"check", "--timeout", "4s"}, args...)...)
	got.want(t, code)
	got.matches(t, patterns...)
}

// Check measures a server, and leaves nothing behind.
func TestCheck(t *testing.T) {
	servers(t, func(t *testing.T, w *world) {
		w.plant(t, "locks", "")
		w.check(t, codeNo, []string{w.top + "/locks/not/there"},
			`^\S+ +3\.\d+\.\d+ +standalone +\d+\.\dms +\d+\.\dms +4s$`,
			"^Rights at "+w.top+"/locks: create, read, delete$",
			"^Warning: There is one server", "^Good for locks, with warnings.$")
		if names, _, err := w.admin.Children(w.top + "/locks"); err != nil || len(names) > 0 {
			t.Errorf("left behind: %q, %v", names, err)
		}
	})
}

// Missing rights are found, as locks would find them.
func TestCheckRights(t *testing.T) {
	servers(t, func(t *testing.T, w *world) {
		w.plant(t, "x", "")
		for problem, rights := range map[string]int32{
			"create nodes in": zk.PermRead, "list": zk.PermCreate | zk.PermDelete, "delete nodes in": zk.PermCreate | zk.PermRead,
		} {
			dir := path.Join(w.top, strings.Fields(problem)[0])
			expect.NoError(t, expect.Err(w.admin.Create(dir, nil, 0, zk.WorldACL(rights))))
			w.check(t, codeUnusable, []string{dir}, "^PROBLEM: This identity may not "+problem+" "+dir, "^Not good for locks.$")
			if rights&zk.PermDelete == 0 {
				continue
			}
			if err := w.admin.Delete(dir, -1); err != nil { // others list this server
				t.Error(err)
			}
		}
	})
}

// Servers that are down are found.
func TestCheckServers(t *testing.T) {
	a := zktest.Start(t)
	down := zktest.StartProxy(t, a.Addr())
	addr := down.Addr()
	expect.NoError(t, down.Close())
	w := newWorld(t, a.Addr(), "/test")
	w.check(t, codeNo, []string{"--zk", a.Addr() + "," + addr}, "^Good for locks, with warnings.$", addr+": it refuses connections")
	w.check(t, codeUnusable, []string{"--zk", addr + "/chroot"}, "^PROBLEM: No server can be used")
	w.call(t.Context(), "check", "--zk", "a,,b").want(t, codeUsage, "empty server name")
}
