package cli

import (
	"context"
	"errors"
	"flag"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

var update = flag.Bool("update", false, "write the golden files anew")

func init() { time.Local = time.UTC }

// world is a server and what a test needs of it.
type world struct {
	addr  string
	admin *zk.Conn // a client whose session owns ephemeral nodes of the test
	top   string   // below which the test's nodes are
}

// servers runs a test against the in-process server, and against a real one.
func servers(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("InProcess", func(t *testing.T) {
		test(t, newWorld(t, zktest.Start(t).Addr(), "/test"))
	})
	t.Run("Real", func(t *testing.T) {
		test(t, newWorld(t, testserver.Server(t).Addr(0), testserver.Path(t)))
	})
}

func newWorld(t *testing.T, addr, top string) *world {
	t.Helper()
	admin, _, err := zk.Connect([]string{addr}, testserver.Patience, zk.WithLogInfo(false), zk.WithLogger(quiet{}))
	expect.NoError(t, err)
	t.Cleanup(admin.Close)
	return &world{addr, admin, top}
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// plant makes a persistent node below the top, with its parents, as an operator would.
func (w *world) plant(t *testing.T, p, data string) { w.make(t, path.Join(w.top, p), data, 0) }

// own makes an ephemeral node below the top, with its parents.
func (w *world) own(t *testing.T, p, data string) {
	w.make(t, path.Join(w.top, p), data, zk.FlagEphemeral)
}

func (w *world) make(t *testing.T, p, data string, flags int32) {
	t.Helper()
	if dir := path.Dir(p); dir != "/" {
		if ok, _, err := w.admin.Exists(dir); err == nil && !ok {
			w.make(t, dir, "", 0)
		}
	}
	_, err := w.admin.Create(p, []byte(data), flags, zk.WorldACL(zk.PermAll))
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		t.Fatalf("create %s: %v", p, err)
	}
}

// exists reports whether there is a node below the top.
func (w *world) exists(t *testing.T, p string) bool {
	t.Helper()
	ok, _, err := w.admin.Exists(path.Join(w.top, p))
	expect.NoError(t, err)
	return ok
}

// manager connects a client of the library.
func (w *world) manager(t *testing.T, opts ...session.Option) *session.Manager {
	return testserver.Connect(t, w.addr, opts...)
}

// call runs the program against the server.
func (w *world) call(ctx context.Context, args ...string) result {
	return call(ctx, []string{"TURNSTILE_ZK=" + w.addr}, args...)
}

// golden compares a text with a file in testdata, after what differs between calls has been replaced.
func (w *world) golden(t *testing.T, file, got string) {
	t.Helper()
	if strings.ContainsFunc(got, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
		t.Errorf("a terminal gets more than texts: %q", got)
	}
	got = normal(strings.NewReplacer(w.top, "/TOP", w.addr, "SERVER").Replace(got))
	file = filepath.Join("testdata", file+".golden")
	if *update {
		expect.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	expect.NoError(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); -update writes it anew:\n%s", file, diff)
	}
}

// normal replaces times and sessions, and joins spaces, whose number goes by them.
func normal(text string) string {
	for _, r := range []struct{ pattern, with string }{
		{`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?`, "TIME"},
		{`0x[0-9a-f]{6,}`, "SESSION"},
		{`\b(\d+d)?(\d+h)?(\d+m)?\d+(\.\d+)?m?s\b`, "AGO"},
		{` {2,}`, "  "},
		{`(go-zookeeper|turnstile)  \d+  `, "$1  TOKEN  "},
	} {
		text = regexp.MustCompile(r.pattern).ReplaceAllString(text, r.with)
	}
	return text
}

// servedInProcess returns the address of an in-process server.
func servedInProcess(t *testing.T) string { return zktest.Start(t).Addr() }
