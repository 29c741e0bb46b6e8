package zktest_test

import (
	"testing"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// The example of the package's documentation.
func TestReplyIsLost(t *testing.T) {
	srv := zktest.Start(t)
	m, err := session.Connect(t.Context(), srv.ConnectString())
	must(t, err)
	defer m.Close()
	lock, err := zklock.New(m, "/locks/report")
	must(t, err)
	cut := srv.CutAfterCommit(zktest.On(zktest.OpCreate, "/locks/report/"))
	if err := lock.Lock(t.Context()); err != nil {
		t.Error(err) // the connection breaks, and Lock succeeds all the same
	}
	<-cut.Hit()
}
