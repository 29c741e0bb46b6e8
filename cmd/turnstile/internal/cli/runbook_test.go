//go:build linux || darwin || freebsd

package cli

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
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
	m := testserver.Connect(t, e.Addr(0))
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
	if got := clients(); len(got) != 1 || !strings.HasPrefix(strings.TrimSpace(got[0]), "/127.0.0.1:") {
		t.Errorf("session %q, clients %q, want one; show:\n%s", id, got, shown.stdout)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	zktest.Eventually(t, patience, "no client with the session", func() bool { return len(clients()) == 0 })
}
