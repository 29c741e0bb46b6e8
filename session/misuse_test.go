package session_test

import (
	"context"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/misuse/misusetest"
	"github.com/turnstile-go/turnstile/internal/testserver"
	"github.com/turnstile-go/turnstile/session"
)

// A nil context, and an object that nothing has made, are a panic that says so, at once.
func TestMisuse(t *testing.T) {
	ctx := patient(t)
	m := testserver.Connect(t, testserver.Server(t).Addr(0))
	s := testserver.Session(t, m)
	claim, err := s.Claim(ctx, dir(t, s)+"/claimed")
	must(t, err)
	misusetest.Check(t, misusetest.Package{
		Name: "session",
		Objects: []misusetest.Object{
			{Zero: &session.Manager{}, Made: m},
			{Zero: &session.Session{}, Made: s},
			{Zero: &session.Claim{}, Made: claim},
			{Zero: &session.Creation{}},
			{Zero: &session.Removal{}},
			{Zero: &session.Watch{}},
		},
		Values: []any{session.State(0), session.CreateMode{}, session.Trace{}},
		Funcs: map[string]func(context.Context){
			"Connect": func(ctx context.Context) { _, _ = session.Connect(ctx, "h1") },
		},
	})
	claim.End()
	must(t, s.Err())
}

// A nil function where no error can be returned is a panic in the goroutine of the caller, and
// not in one of the manager's.
func TestNilFunction(t *testing.T) {
	m := testserver.Connect(t, testserver.Server(t).Addr(0))
	s := testserver.Session(t, m)
	_, _, w, err := s.Watch(patient(t), dir(t, s))
	must(t, err)
	for name, f := range map[string]func(){
		"Manager.Subscribe": func() { m.Subscribe(nil) },
		"Session.AfterEnd":  func() { s.AfterEnd(nil) },
		"Session.Sweep":     func() { s.Sweep(patient(t), "/", nil) },
		"Watch.AfterEvent":  func() { w.AfterEvent(nil) },
	} {
		func() {
			defer func() {
				if got, _ := recover().(string); !strings.HasPrefix(got, "session: "+name+": nil function") {
					t.Errorf("%s of nil: panic %q", name, got)
				}
			}()
			f()
		}()
	}
}
