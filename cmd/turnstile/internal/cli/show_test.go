package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

const (
	uuidA = "_c_aaaaaaaa-0000-4000-8000-000000000000-"
	uuidB = "_c_bbbbbbbb-0000-4000-8000-000000000000-"
	uuidC = "_c_cccccccc-0000-4000-8000-000000000000-"
	zkGo  = "_c_00112233445566778899aabbccddeeff-"
	kazoo = "00112233445566778899aabbccddeeff"

	dataA = `{"id":"web-3/4711","label":"request 42","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}`
	dataB = `{"id":"web-4/17"}`

	firstHolder = "l/" + uuidA + "lock-0000000000"
)

// plantLocks makes locks of all kinds, as several libraries do.
func plantLocks(t *testing.T, w *world) {
	t.Helper()
	w.own(t, "invoice/"+uuidA+"lock-0000000000", dataA)
	w.own(t, "invoice/"+uuidB+"lock-0000000001", dataB)
	w.own(t, "invoice/"+uuidC+"lock-0000000002", "10.1.2.3")
	w.own(t, "config/"+uuidA+"__READ__0000000000", dataA)
	w.own(t, "config/"+uuidB+"__READ__0000000001", dataB)
	w.own(t, "config/"+uuidC+"__WRIT__0000000002", "10.1.2.3")
	w.plant(t, "pool", `{"maxLeases":4,"version":1}`)
	w.plant(t, "pool/limit", "")
	w.own(t, "pool/"+uuidA+"x3-lease-0000000000", dataA)
	w.own(t, "pool/"+uuidB+"x2-lease-0000000001", dataB)
	w.own(t, "java/leases/"+uuidA+"lease-0000000000", "10.1.2.3")
	w.plant(t, "java/locks", "")
	w.own(t, "python/"+kazoo+"__lock__0000000000", "worker-7")
	w.own(t, "golang/"+zkGo+"lock-0000000000", "")
	w.plant(t, "stuck/lock-0000000000", "")
	w.own(t, "stuck/"+uuidB+"lock-0000000001", dataB)
	w.own(t, "mixed/"+uuidA+"lock-0000000000", dataA)
	w.own(t, "mixed/"+uuidB+"lease-0000000001", dataB)
	w.plant(t, "unused/x", "")
	expect.NoError(t, w.admin.Delete(w.top+"/unused/x", -1))
	w.own(t, "evil/"+uuidA+"lock-0000000000", "{\"id\":\"\\u001b]0;gotcha\\u0007\\u202etxt\",\"label\":\"\\u009b31mred\"}")
}

func TestLs(t *testing.T) {
	servers(t, func(t *testing.T, w *world) {
		plantLocks(t, w)
		got := w.call(t.Context(), "ls", w.top+"/")
		got.want(t, 0)
		w.golden(t, "ls", got.stdout)
	})
}

func TestShow(t *testing.T) {
	servers(t, func(t *testing.T, w *world) {
		plantLocks(t, w)
		var all strings.Builder
		for _, args := range []string{
			"invoice", "config", "pool", "java", "python", "golang --wide", "stuck", "mixed", "unused", "evil", "evil --wide",
		} {
			words := strings.Fields(args)
			words[0] = w.top + "/" + words[0]
			got := w.call(t.Context(), append([]string{"show"}, words...)...)
			got.want(t, 0)
			all.WriteString("$ turnstile show " + strings.Join(words, " ") + "\n" + got.stdout + got.err + "\n")
		}
		w.golden(t, "show", all.String())
	})
}

// A path that does not exist, that of a contender, and that of a directory of locks, are told from each other.
func TestShowHints(t *testing.T) {
	w := newWorld(t, servedInProcess(t), "/test")
	plantLocks(t, w)
	w.call(t.Context(), "show", "/test/nothing").want(t, codeNotFound, "/test/nothing does not exist")
	w.call(t.Context(), "show", "/test/invoice/"+uuidA+"lock-0000000000").want(t, codeUsage, "is the node of a contender. The lock is /test/invoice")
	w.call(t.Context(), "show", "/test/invoice/"+uuidA+"lock-0000000007").want(t, codeNotFound, "has left. The lock is /test/invoice")
	w.call(t.Context(), "show", "/").want(t, codeUsage, "below /")
	got := w.call(t.Context(), "show", "/test")
	got.want(t, 0)
	if want := "/test is no lock: it is a directory with 10 children: turnstile ls /test"; !strings.Contains(got.stdout, want) {
		t.Errorf("%q lacks %q", got.stdout, want)
	}
}

// A command in a hint reaches the same servers as the one that gives the hint.
func TestHintsNameServers(t *testing.T) {
	w := newWorld(t, servedInProcess(t), "/test")
	plantLocks(t, w)
	w.plant(t, "only/child", "")
	for path, want := range map[string]string{"/only": "ls /only", "/stuck": "break --force --node lock-0000000000 /stuck"} {
		want = "turnstile --zk " + w.addr + "/test " + want
		got := call(t.Context(), []string{"TURNSTILE_TIMEOUT=10s"}, "show", "--zk", w.addr+"/test", "--auth", "digest:me:secret", path)
		got.want(t, 0)
		if !strings.Contains(got.stdout, want+"\n") {
			t.Errorf("%q lacks %q", got.stdout, want)
		}
	}
}

func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"web-3/4711":   "web-3/4711",
		"ärger 漢":      "ärger 漢",
		"\x1b[31m":     `\x1b[31m`,
		"a\u202eb":     `a\u202eb`,
		"\xff\u009b\n": `\xff\u009b\n`,
	} {
		if got := clean(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// The runbook "Which process is a session": show --wide prints the session, cons of the one server that has its
// connection prints the client's address, and no server does when the client is gone.
func TestSessionRunbook(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "operations.md"))
	expect.NoError(t, err)
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
		expect.NoError(t, err)
		return regexp.MustCompile(`(?m)^ */127\.0\.0\.1:.*sid=`+id+`,`).FindAllString(text, -1)
	}
	if got := clients(); len(got) != 1 || id == "" {
		t.Errorf("session %q, clients %q, want one; show:\n%s", id, got, shown.stdout)
	}
	w.admin.Close()
	zktest.Eventually(t, testserver.Patience, "no client with the session", func() bool { return len(clients()) == 0 })
}
