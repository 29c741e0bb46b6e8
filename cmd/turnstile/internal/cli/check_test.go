package cli

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/turnstile-go/turnstile/zktest"
)

// check runs "check --json" and returns its report.
func (w *world) check(t *testing.T, code int, args ...string) ensemble.Report {
	t.Helper()
	got, r := w.checked(t, args...)
	got.want(t, code)
	return r
}

func (w *world) checked(t *testing.T, args ...string) (got result, r ensemble.Report) {
	t.Helper()
	got = w.call(t.Context(), append([]string{"check", "--json", "--timeout", "4s"}, args...)...)
	if err := json.Unmarshal([]byte(got.stdout), &r); err != nil {
		t.Fatalf("%q: %v", got.stdout, err)
	}
	return got, r
}

// checkGood is check for servers with which nothing is wrong, unless their version has a defect.
func (w *world) checkGood(t *testing.T, args ...string) ensemble.Report {
	t.Helper()
	got, r := w.checked(t, args...)
	r.Warnings = slices.DeleteFunc(r.Warnings, func(s string) bool { return strings.Contains(s, "can lose what it has confirmed") })
	if len(r.Problems)+len(r.Warnings) > 0 {
		t.Errorf("problems %q, warnings %q", r.Problems, r.Warnings)
	}
	got.want(t, map[ensemble.Verdict]int{ensemble.Good: codeOK, ensemble.Warned: codeNo}[r.Verdict])
	return r
}

// wantText checks that one of several texts contains another.
func wantText(t *testing.T, all []string, text string) {
	t.Helper()
	if !slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, text) }) {
		t.Errorf("%q lacks %q", all, text)
	}
}

// Check measures a server, and leaves nothing behind.
func TestCheck(t *testing.T) {
	servers(t, func(t *testing.T, w *world) {
		w.plant(t, "locks", "")
		r := w.check(t, codeNo, w.top+"/locks/not/there")
		s := r.Servers[0]
		if r.Verdict != ensemble.Warned || len(r.Servers) != 1 || s.Role != "standalone" || s.Version == "" ||
			s.Read.Rounds != 100 || s.Write.Rounds != 100 || s.Write.P99 < s.Write.Median || s.Write.Median <= 0 ||
			s.Granted != 4_000 || s.Shortest <= 0 || s.Remaining <= 0 || s.Remaining >= s.Granted || s.Same != ensemble.Yes ||
			s.ShortBuffer != ensemble.No {
			t.Errorf("%+v", r)
		}
		if grace := s.Remaining - s.Run; grace < 799 || grace > 801 {
			t.Errorf("locks survive %v, and run %v: want a grace period of 0.8s less", s.Remaining, s.Run)
		}
		if r.Tried != w.top+"/locks" || r.Rights != (ensemble.Rights{Create: "yes", Read: "yes", Delete: "yes"}) || r.Containers != "yes" {
			t.Errorf("%+v", r)
		}
		wantText(t, r.Warnings, "There is one server")
		if names, _, err := w.admin.Children(w.top + "/locks"); err != nil || len(names) > 0 {
			t.Errorf("left behind: %q, %v", names, err)
		}
		got := w.call(t.Context(), "check", "--timeout", "2s", w.top)
		got.want(t, codeNo)
		for _, text := range []string{"standalone", "Rights at " + w.top + ": create yes, read yes, delete yes", "Warning: There is one server", "Good for locks, with warnings."} {
			if !strings.Contains(got.stdout, text) {
				t.Errorf("%q lacks %q", got.stdout, text)
			}
		}
	})
}

// Missing rights are found, as locks would find them.
func TestCheckRights(t *testing.T) {
	servers(t, func(t *testing.T, w *world) {
		w.plant(t, "x", "")
		for name, c := range map[string]struct {
			has     int32
			rights  ensemble.Rights
			problem string
		}{
			"read":   {zk.PermRead, ensemble.Rights{Create: "no", Read: "yes", Delete: "unknown"}, "may not create nodes in "},
			"unread": {zk.PermCreate | zk.PermDelete, ensemble.Rights{Create: "yes", Read: "no", Delete: "yes"}, "may not list "},
			"keep":   {zk.PermCreate | zk.PermRead, ensemble.Rights{Create: "yes", Read: "yes", Delete: "no"}, "may not delete nodes in "},
		} {
			dir := path.Join(w.top, name)
			if _, err := w.admin.Create(dir, nil, 0, zk.WorldACL(c.has)); err != nil {
				t.Fatal(err)
			}
			r := w.check(t, codeUnusable, dir)
			if r.Verdict != ensemble.Unusable || r.Rights != c.rights {
				t.Errorf("%s: %+v", name, r)
			}
			wantText(t, r.Problems, c.problem+dir)
			if c.has&zk.PermDelete == 0 {
				continue
			}
			if err := w.admin.Delete(dir, -1); err != nil { // others list this server
				t.Error(err)
			}
		}
	})
}

// A jute.maxbuffer that is smaller than usual is found.
func TestCheckLongestRequest(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) string{
		"in process": func(t *testing.T) string { return zktest.Start(t, zktest.MaxPacket(32768)).Addr() },
		"real": func(t *testing.T) string {
			return zktest.StartReal(t, zktest.Environ("JAVA_TOOL_OPTIONS", "-Djute.maxbuffer=32768")).Addr(0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newWorld(t, start(t), "/test").check(t, codeNo)
			wantText(t, r.Warnings, "takes requests of less than 1048575 bytes (jute.maxbuffer)")
		})
	}
}

// Servers of two ensembles, and servers that are down, are found.
func TestCheckServers(t *testing.T) {
	a, b := zktest.Start(t), zktest.Start(t)
	down := zktest.StartProxy(t, a.Addr())
	addr := down.Addr()
	if err := down.Close(); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, a.Addr(), "/test")
	r := w.check(t, codeUnusable, "--zk", a.Addr()+","+b.Addr()+","+addr)
	wantText(t, r.Problems, "belongs to another ensemble")
	wantText(t, r.Warnings, addr+": it refuses connections")
	r = w.check(t, codeUnusable, "--zk", addr+"/chroot")
	wantText(t, r.Problems, "No server can be used")
	w.call(t.Context(), "check", "--zk", "a,,b").want(t, codeUsage, "empty server name")
}

// The configuration of a real ensemble tells how many servers vote.
func TestCheckRealEnsemble(t *testing.T) {
	three := zktest.StartReal(t, zktest.Servers(3))
	w := newWorld(t, three.Addr(0), "/test")
	r := w.checkGood(t, "--zk", three.ConnectString())
	if r.Voters != 3 {
		t.Errorf("%d voters", r.Voters)
	}
	leader, err := three.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	follower := (leader + 1) % 3
	if err := three.Stop(follower); err != nil {
		t.Fatal(err)
	}
	r = w.check(t, codeNo, "--zk", three.Addr(leader)+","+three.Addr(follower))
	wantText(t, r.Warnings, "--zk names 2 of the ensemble's 3 servers")
	wantText(t, r.Warnings, three.Addr(follower)+": it refuses connections")
}
