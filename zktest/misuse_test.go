package zktest_test

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/misusetest"
	"github.com/turnstile-go/turnstile/zktest"
)

// A nil context, and an object that nothing has made, are a panic that says so, at once.
func TestMisuse(t *testing.T) {
	target := sharedServer(t)
	srv, proxy := zktest.Start(t), zktest.StartProxy(t, target)
	misusetest.Check(t, misusetest.Package{
		Name: "zktest",
		Objects: []misusetest.Object{
			{Zero: &zktest.Server{}, Made: srv},
			{Zero: &zktest.Proxy{}, Made: proxy},
			{Zero: &zktest.Ensemble{}, Made: shared.ensemble},
			{Zero: &zktest.Fault{}},
		},
		Values: []any{zktest.Direction(0), zktest.Op(0)},
	})
}

// Nil options and matches are noticed where they are given, and not by the first request.
func TestNilArguments(t *testing.T) {
	if _, err := zktest.New(nil); err == nil {
		t.Error("New of a nil option: no error")
	}
	if _, err := zktest.NewReal(nil); err == nil {
		t.Error("NewReal of a nil option: no error")
	}
	srv := zktest.Start(t)
	for name, f := range map[string]func(){
		"CutBefore":      func() { srv.CutBefore(nil) },
		"CutAfterCommit": func() { srv.CutAfterCommit(nil) },
		"HoldRequest":    func() { srv.HoldRequest(nil) },
		"HoldReply":      func() { srv.HoldReply(nil) },
		"Count":          func() { srv.Count(nil) },
		"Dialer":         func() { _, _ = srv.Dialer()(nil, "", "") },
	} {
		func() {
			defer func() {
				if got, ok := recover().(string); !ok {
					t.Errorf("%s of nil: panic %q", name, got)
				}
			}()
			f()
		}()
	}
}
