package session_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/misusetest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
)

// A nil context panics at once with the name of the method, and so does a method of an object
// that its constructor has not made.
func TestMisuse(t *testing.T) {
	m := testserver.Connect(t, testserver.Server(t).Addr(0))
	s := testserver.Session(t, m)
	node, err := s.Enter(patient(t), session.NewNode{Dir: testserver.Path(t), Name: "n"})
	must(t, err)
	misusetest.Check(t, misusetest.Package{
		Name: "session",
		Objects: []misusetest.Object{
			{Zero: &session.Manager{}, Made: m},
			{Zero: &session.Session{}, Made: s},
			{Zero: &session.Watch{}},
			{Zero: &session.Removal{}},
			{Zero: &session.Node{}, Made: node},
		},
		Values: []any{session.State(0), session.CreateMode{}, session.Trace{}, session.RequestInfo{}},
		Funcs: map[string]func(context.Context){
			"Connect": func(ctx context.Context) { _, _ = session.Connect(ctx, "h1") },
		},
	})
	must(t, s.Err())
}

var goodPaths = []string{
	"/", "/a", "/a/b", "/a.b", "/.a", "/a.", "/...", "/a/..b", "/ä/日本", "/a b", "/zookeeper/quota",
	"/" + strings.Repeat("x", 16<<10-1),
}

var badPaths = []string{
	"", "a", "a/b", "//", "//a", "/a/", "/a//b", "/.", "/..", "/./a", "/a/.", "/a/../b", "/a/..",
	"/\x00", "/a\x00b", "/\x01", "/\x1f", "/\x7f", "/\u009f", "/\ue000", "/\uf8ff", "/\ufff0",
	"/\uffff", "/\U0001F512", "/\xff", "/\xed\xa0\x80", "/" + strings.Repeat("x", 16<<10),
}

func TestValidatePath(t *testing.T) {
	for _, p := range goodPaths {
		if err := misuse.ValidatePath(p); err != nil {
			t.Errorf("%.40q: %v", p, err)
		}
	}
	for _, p := range badPaths {
		if err := misuse.ValidatePath(p); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%.40q: %v, want ErrInvalid", p, err)
		}
	}
}

// go-zookeeper refuses no path that we accept. Its error, zk.ErrInvalidPath, would come too late
// and is not one of ours. A closed Conn reports it without any I/O.
func FuzzValidatePath(f *testing.F) {
	for _, p := range append(goodPaths, badPaths...) {
		f.Add(p)
	}
	conn, _, err := zk.Connect([]string{"127.0.0.1:1"}, time.Second, zk.WithLogger(silent{}),
		zk.WithDialer(func(string, string, time.Duration) (net.Conn, error) { return nil, net.ErrClosed }))
	if err != nil {
		f.Fatal(err)
	}
	conn.Close()
	f.Fuzz(func(t *testing.T, path string) {
		err := misuse.ValidatePath(path)
		if err != nil && !errors.Is(err, session.ErrInvalid) {
			t.Fatalf("%q: %v does not match ErrInvalid", path, err)
		}
		if _, _, zkErr := conn.Get(path); err == nil && errors.Is(zkErr, zk.ErrInvalidPath) {
			t.Fatalf("%q is accepted, but go-zookeeper refuses it", path)
		}
	})
}

type silent struct{}

func (silent) Printf(string, ...any) {}
