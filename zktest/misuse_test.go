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
