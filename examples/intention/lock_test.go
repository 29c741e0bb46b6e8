package main

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/exampletest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// allowed is the matrix as the textbooks on databases have it, mode by mode.
var allowed = map[Mode]string{IS: "is- ix- s-", IX: "is- ix-", S: "is- s-", X: ""}

// mayBeside reports whether two modes may be held at the same time.
func mayBeside(a, b Mode) bool { return strings.Contains(" "+allowed[a], " "+prefixes[b]) }

// eachServer runs a test on a server in the process, and on the shared one, which is a real one if there is one.
func eachServer(t *testing.T, test func(t *testing.T, addr string)) {
	t.Run("in the process", func(t *testing.T) { test(t, zktest.Start(t, zktest.TickTime(200*time.Millisecond)).Addr()) })
	t.Run("shared", func(t *testing.T) { test(t, testserver.Server(t).Addr(0)) })
}

var patient = expect.Patient

func newLock(t *testing.T, m *session.Manager, path string, mode Mode) *Lock {
	t.Helper()
	l, err := NewLock(m, path, mode)
	expect.NoError(t, err)
	return l
}

func acquire(t *testing.T, l *Lock) *queue.Lease {
	t.Helper()
	lease, err := l.Acquire(patient(t))
	expect.NoError(t, err)
	return lease
}

func release(t *testing.T, l *queue.Lease) {
	t.Helper()
	if err := l.Release(patient(t)); err != nil {
		t.Error(err)
	}
}

// waiting begins to acquire a lock, and returns when it is the n-th contender.
func waiting(t *testing.T, l *Lock, n int) <-chan *queue.Lease {
	t.Helper()
	got := make(chan *queue.Lease, 1)
	go func() {
		lease, err := l.Acquire(patient(t))
		if err != nil {
			t.Error(err)
		}
		got <- lease
	}()
	zktest.Eventually(t, testserver.Patience, fmt.Sprint(n, " contenders"), func() bool { return len(contenders(t, l)) == n })
	return got
}

// contenders returns the modes of the contenders in order, with a star for a holder.
func contenders(t *testing.T, l *Lock) []string {
	t.Helper()
	all, err := l.Contenders(patient(t), intention)
	expect.NoError(t, err)
	var out []string
	for _, c := range all {
		n, _ := queue.ParseNode(path.Base(c.Path), prefixes...)
		word := n.Prefix
		if c.Holder {
			word += "*"
		}
		out = append(out, word)
	}
	return out
}

// Each mode is tried beside each other one that another process holds.
func TestMatrix(t *testing.T) {
	longtest.InCI(t)
	eachServer(t, func(t *testing.T, addr string) {
		here, there := testserver.Connect(t, addr), testserver.Connect(t, addr)
		dir := testserver.Path(t)
		for held := range allowed {
			lease := acquire(t, newLock(t, here, dir, held))
			for tried := range allowed {
				beside, err := newLock(t, there, dir, tried).TryAcquire(patient(t))
				switch {
				case mayBeside(held, tried) && err != nil:
					t.Errorf("%s beside %s: %v", prefixes[tried], prefixes[held], err)
				case !mayBeside(held, tried) && !errors.Is(err, queue.ErrBusy):
					t.Errorf("%s beside %s: %v, want ErrBusy", prefixes[tried], prefixes[held], err)
				}
				if err == nil {
					release(t, beside)
				}
			}
			release(t, lease)
		}
	})
}

// A writer of the whole table does not starve: those that come behind it wait, although they could share the
// lock with its holders.
func TestOrder(t *testing.T) {
	longtest.InCI(t)
	eachServer(t, func(t *testing.T, addr string) {
		m, dir := testserver.Connect(t, addr), testserver.Path(t)
		one, two := acquire(t, newLock(t, m, dir, IX)), acquire(t, newLock(t, m, dir, IS))
		whole := waiting(t, newLock(t, m, dir, X), 3)
		first := waiting(t, newLock(t, m, dir, IX), 4)
		second := waiting(t, newLock(t, m, dir, IS), 5)
		all := newLock(t, m, dir, S)
		if diff := cmp.Diff([]string{"ix-*", "is-*", "x-", "ix-", "is-"}, contenders(t, all)); diff != "" {
			t.Error(diff)
		}
		release(t, one)
		release(t, two)
		release(t, <-whole)
		behind := []*queue.Lease{<-first, <-second}
		if diff := cmp.Diff([]string{"ix-*", "is-*"}, contenders(t, all)); diff != "" {
			t.Error(diff)
		}
		for _, lease := range behind {
			release(t, lease)
		}
	})
}

func TestMain(m *testing.M) { exampletest.Main(m, main) }

func TestRun(t *testing.T) {
	longtest.InCI(t)
	var out bytes.Buffer
	expect.NoError(t, run(t.Context(), &out, testserver.Server(t).ConnectString()))
	want := regexp.MustCompile(`^60 transfers, at most \d+ at the same time\n15 audits, and each found the right sum\n$`)
	if !want.Match(out.Bytes()) {
		t.Errorf("it says\n%s", out.String())
	}
	testserver.WaitChildren(t, tablePath, 0)
}

func TestEnds(t *testing.T) { exampletest.Ends(t, tablePath, exampletest.ZK) }
