package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// The runbook "Which process is a session": show --wide prints the session, cons of the one server that has its
// connection prints the client's address, and no server does when the client is gone.
func TestSessionRunbook(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`echo cons | nc $s 2181; done | grep sid=0x`, "`ss -tnp sport = :"} {
		if !strings.Contains(string(page), text) {
			t.Errorf("docs/operations.md lacks %q", text)
		}
	}
	e := testserver.Server(t)
	w := newWorld(t, e.Addr(0), testserver.Path(t))
	w.own(t, firstHolder, dataA)
	shown := w.call(t.Context(), "show", "--wide", w.top+"/l")
	shown.want(t, 0)
	id := regexp.MustCompile(`0x[0-9a-f]{9,}`).FindString(shown.stdout)
	clients := func() []string {
		text, err := e.Word(t.Context(), 0, "cons")
		if err != nil {
			t.Fatal(err)
		}
		return regexp.MustCompile(`(?m)^ */127\.0\.0\.1:.*sid=`+id+`,`).FindAllString(text, -1)
	}
	if got := clients(); len(got) != 1 || id == "" {
		t.Errorf("session %q, clients %q, want one; show:\n%s", id, got, shown.stdout)
	}
	w.admin.Close()
	zktest.Eventually(t, testserver.Patience, "no client with the session", func() bool { return len(clients()) == 0 })
}
