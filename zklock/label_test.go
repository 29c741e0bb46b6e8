package zklock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
)

// An operator sees who contends, for what, since when and in which session.
func TestContenderSays(t *testing.T) {
	dir := testserver.Path(t)
	m := connect(t)
	mx := newMutex(t, m, dir)
	l, err := mx.Acquire(queue.WithLabel(patient(t), "request 42"))
	must(t, err)
	all, err := mx.Contenders(patient(t))
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	c := all[0]
	token, err := l.Token(patient(t))
	must(t, err)
	if !strings.Contains(c.ID, "/") || c.Label != "request 42" || c.Session != testserver.Session(t, m).ID() || c.Token != token {
		t.Errorf("%+v, want this process, request 42, session %x and token %d", c, testserver.Session(t, m).ID(), token)
	}
	if age := time.Since(c.Since); age < -time.Minute || age > time.Minute {
		t.Errorf("since %v, %v ago", c.Since, age)
	}
	must(t, l.Release(patient(t)))
}

// A label that a node cannot have is written as it can, and makes no lock fail.
func TestOddLabel(t *testing.T) {
	m := connect(t)
	ctx := queue.WithLabel(patient(t), "two\nlines "+strings.Repeat("x", 300))
	mx := newMutex(t, m, testserver.Path(t))
	must(t, mx.Lock(ctx))
	all, err := mx.Contenders(patient(t))
	must(t, err)
	if len(all) != 1 || !strings.HasPrefix(all[0].Label, `two\x0alines xxx`) || !strings.HasSuffix(all[0].Label, "x…") {
		t.Errorf("%+v", all)
	}
	must(t, mx.Unlock())
}
