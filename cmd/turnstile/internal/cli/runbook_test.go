//go:build linux || darwin || freebsd

package cli

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// runbooks requires that docs/operations.md has some texts, which the tests have seen servers print.
func runbooks(t *testing.T, texts ...string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		if !strings.Contains(string(page), text) {
			t.Errorf("docs/operations.md lacks %q", text)
		}
	}
}

// The runbook "Which process is a session": show --wide prints the session, cons of the one server that has its
// connection prints the client's address, and no server does when the client is gone.
func TestSessionRunbook(t *testing.T) {
	runbooks(t, `echo cons | nc $s 2181; done | grep sid=0x`, "`ss -tnp sport = :")
	e := testserver.Server(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var mu sync.Mutex
	var local string // the client's address, as the client has it
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err == nil {
			mu.Lock()
			local = c.LocalAddr().String()
			mu.Unlock()
		}
		return c, err
	}
	m := testserver.Connect(t, e.Addr(0), session.WithDialer(dial))
	path := testserver.Path(t)
	lock, err := zklock.New(m, path)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Lock(ctx); err != nil {
		t.Fatal(err)
	}
	shown := call(ctx, []string{"TURNSTILE_ZK=" + e.ConnectString()}, "show", "--wide", path)
	shown.want(t, 0)
	id := regexp.MustCompile(`0x[0-9a-f]{9,}`).FindString(shown.stdout)
	clients := func() (found []string) {
		text, err := e.Word(ctx, 0, "cons")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text) {
			if id != "" && strings.Contains(line, "sid="+id+",") {
				found = append(found, line)
			}
		}
		return found
	}
	mu.Lock()
	want := local
	mu.Unlock()
	if got := clients(); len(got) != 1 || !strings.HasPrefix(strings.TrimSpace(got[0]), "/"+want+"[") {
		t.Errorf("session %q, clients %q, want one at %s; show:\n%s", id, got, want, shown.stdout)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	zktest.Eventually(t, patience, "no client with the session", func() bool { return len(clients()) == 0 })
}

// The runbook "The quorum is lost", with three servers, of which two are down and one of these has lost its disk.
func TestQuorumRunbook(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	e := zktest.StartReal(t, zktest.Nodes(3))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	lost := dataOf(ctx, t, e, 2)

	must(e.Stop(1))
	must(e.Stop(2))
	const without = "This ZooKeeper instance is not currently serving requests"
	srvr := func(i int) string { text, _ := e.Word(ctx, i, "srvr"); return text }
	zktest.Eventually(t, patience, "no quorum", func() bool { return strings.Contains(srvr(0), without) })
	if text := srvr(1); text != "" {
		t.Errorf("a server that is down says %q", text)
	}
	var r ensemble.Report
	got := call(ctx, []string{"TURNSTILE_ZK=" + e.ConnectString()},
		"check", "--json", "--observe", "200ms", "--rounds", "1")
	got.want(t, codeUnusable)
	must(json.Unmarshal([]byte(got.stdout), &r))
	const leaderless = "it runs, but serves no clients: it has no leader"
	if r.Servers[0].Error != leaderless {
		t.Errorf("check says of the server that runs: %q", r.Servers[0].Error)
	}

	must(e.Launch(1))
	serves := regexp.MustCompile(`Mode: (leader|follower)`)
	zktest.Eventually(t, patience, "a quorum of two", func() bool {
		return serves.MatchString(srvr(0)) && serves.MatchString(srvr(1))
	})
	must(os.RemoveAll(lost))
	must(e.Launch(2))
	zktest.Eventually(t, patience, "the server without its disk follows", func() bool {
		return strings.Contains(srvr(2), "Mode: follower")
	})
	lock, err := zklock.New(testserver.Connect(t, e.ConnectString()), testserver.Path(t))
	must(err)
	must(lock.Do(ctx, func(context.Context) error { return nil }))
	runbooks(t, without, leaderless, "`Mode: leader`, `Mode: follower`",
		"echo srvr | nc -w 2 $s 2181 | grep -e Mode -e 'not currently serving'")
}

// dataOf returns the directory with the snapshots and logs of a server.
func dataOf(ctx context.Context, t *testing.T, e *zktest.Ensemble, i int) string {
	t.Helper()
	text, err := e.Word(ctx, i, "conf")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^dataDir=(.*)$`).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("server %d does not say where its data is: %s", i, text)
	}
	return strings.TrimSuffix(found[1], "/version-2") + "/version-2"
}
