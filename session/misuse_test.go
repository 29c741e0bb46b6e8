package session_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/misusetest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
)

// A nil context and a nil function panic at once with the name of the method, and so does a method of an object
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
	_, _, w, err := s.Watch(patient(t), "/")
	must(t, err)
	for what, call := range map[string]func(){
		"Manager.Subscribe": func() { m.Subscribe(nil) }, "Manager.TellLoss": func() { m.TellLoss(nil) },
		"Session.AfterEnd": func() { s.AfterEnd(nil) }, "Watch.AfterEvent": func() { w.AfterEvent(nil) },
	} {
		func() {
			defer func() {
				if got, _ := recover().(string); !strings.HasPrefix(got, "session: "+what+": nil function") {
					t.Errorf("%s: panic %q", what, got)
				}
			}()
			call()
		}()
	}
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
