package session_test

import (
	"context"
	"strings"
	"testing"

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

// A nil function panics in the goroutine of the caller, and not in one of the manager, if the
// method returns no error.
func TestNilFunction(t *testing.T) {
	m := testserver.Connect(t, testserver.Server(t).Addr(0))
	defer func() {
		if got, _ := recover().(string); !strings.HasPrefix(got, "session: Manager.Subscribe: nil function") {
			t.Errorf("panic %q", got)
		}
	}()
	m.Subscribe(nil)
}
