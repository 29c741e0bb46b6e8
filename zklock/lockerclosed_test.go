package zklock_test

import (
	"bytes"
	"log/slog"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// logbook is a log of warnings.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) option() session.Option {
	return session.WithLogger(slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelWarn})))
}

// lines returns the lines that have all of the words.
func (l *logbook) lines(words ...string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
next:
	for line := range strings.Lines(l.text.String()) {
		for _, word := range words {
			if !strings.Contains(line, word) {
				continue next
			}
		}
		out = append(out, line)
	}
	return out
}

// outcome says how a function has ended.
type outcome struct {
	returned bool
	panicked any
}

// goexited is the outcome of runtime.Goexit, which runs deferred functions.
var goexited = outcome{}

// outcomeOf runs f in a goroutine of its own.
func outcomeOf(f func()) <-chan outcome {
	ch := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			o.panicked = recover()
			ch <- o
		}()
		f()
		o.returned = true
	}()
	return ch
}

// closing are the moments at which the manager of a Locker's Lock is closed. Each function brings the Lock of
// l, whose path is lockPath, to that moment.
var closing = map[string]func(t *testing.T, mx *zklock.Mutex, rival *session.Manager){
	"in the queue": func(t *testing.T, _ *zklock.Mutex, rival *session.Manager) {
		must(t, newMutex(t, rival, lockPath).Lock(t.Context()))
	},
	"beside a lost hold": func(t *testing.T, mx *zklock.Mutex, rival *session.Manager) {
		must(t, mx.Lock(t.Context()))
		all, err := mx.Contenders(t.Context())
		must(t, err)
		s, err := rival.Session(t.Context())
		must(t, err)
		must(t, s.Delete(t.Context(), all[0].Path, -1))
		time.Sleep(time.Second)
	},
	"between two tries": func(t *testing.T, _ *zklock.Mutex, rival *session.Manager) { conflict(t, rival) },
}

// conflict puts a lock of another kind at lockPath.
func conflict(t *testing.T, rival *session.Manager) *queue.Lease {
	t.Helper()
	sem, err := semaphore.New(rival, lockPath, 1)
	must(t, err)
	l, err := sem.Acquire(t.Context())
	must(t, err)
	return l
}

// Close of the manager ends the goroutines that are in Lock with runtime.Goexit, and the log says so. There is
// no panic, and nothing hangs.
func TestLockerOfClosedManager(t *testing.T) {
	for when, prepare := range closing {
		t.Run(when, func(t *testing.T) {
			inBubble(t, func(t *testing.T, _ *zktest.Server, connect func(...session.Option) *session.Manager) {
				var log logbook
				m, rival := connect(log.option()), connect()
				mx := newMutex(t, m, lockPath)
				prepare(t, mx, rival)
				locks := outcomeOf(mx.Locker(nil).Lock)
				time.Sleep(10 * time.Minute)
				before := time.Now()
				must(t, m.Close())
				if got := receive(t, "Lock", locks); got != goexited {
					t.Errorf("Lock when the manager is closed: %+v, want the end of the goroutine", got)
				}
				if d := time.Since(before); d > time.Millisecond {
					t.Errorf("Lock ended %v after the manager was closed", d)
				}
				locks = outcomeOf(mx.Locker(nil).Lock)
				if got := receive(t, "Lock", locks); got != goexited {
					t.Errorf("Lock after the manager was closed: %+v, want the end of the goroutine", got)
				}
				synctest.Wait() // for the goroutine that writes the log
				if lines := log.lines("ends its goroutine", lockPath, "closed"); len(lines) != 2 {
					t.Errorf("said in the log: %q, want two lines", lines)
				}
			})
		})
	}
}

// A goroutine that ends in the Lock of a sync.Cond's Wait runs its deferred Unlock, although it does not hold
// the lock. That is no misuse.
func TestLockerUnderCondClosed(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *zktest.Server, connect func(...session.Option) *session.Manager) {
		m := connect()
		c := sync.NewCond(newMutex(t, m, lockPath).Locker(nil))
		waits := outcomeOf(func() {
			c.L.Lock()
			defer c.L.Unlock()
			for {
				c.Wait()
			}
		})
		synctest.Wait()
		must(t, m.Close())
		c.Broadcast()
		if got := receive(t, "Wait", waits); got != goexited {
			t.Errorf("Wait: %+v, want the end of the goroutine", got)
		}
	})
}

// onLost is not called when the program itself closes the manager.
func TestLockerOnLostByClose(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *zktest.Server, connect func(...session.Option) *session.Manager) {
		m := connect()
		one, other := newMutex(t, m, lockPath), newMutex(t, m, lockPath+"-other")
		lost := func(err error) { t.Errorf("onLost: %v", err) }
		lockers := []sync.Locker{one.Locker(lost), newMulti(t, other).Locker(lost)}
		for _, l := range lockers {
			l.Lock()
		}
		must(t, m.Close())
		synctest.Wait()
		for _, l := range lockers {
			if v := panicOf(l.Unlock); v != nil {
				t.Errorf("Unlock after Close panics: %v", v)
			}
		}
	})
}

// Lock logs an error that it tries again for ever: at once, and then once a minute, for all goroutines in Lock together.
func TestLockerLogsRefusals(t *testing.T) {
	const wait = 10 * time.Minute
	const enough, tooMuch = 8, 12 // lines in that time
	count := func(t *testing.T, log *logbook, what error) {
		t.Helper()
		if n := len(log.lines("level=WARN", lockPath, what.Error())); n < enough || n > tooMuch {
			t.Errorf("%d lines in %v about %q", n, wait, what)
		}
	}
	t.Run("conflict", func(t *testing.T) {
		inBubble(t, func(t *testing.T, _ *zktest.Server, connect func(...session.Option) *session.Manager) {
			var log logbook
			m := connect(log.option())
			lease := conflict(t, connect())
			mx := newMutex(t, m, lockPath)
			l := newMulti(t, mx).Locker(nil)
			locks := []<-chan outcome{outcomeOf(l.Lock), outcomeOf(l.Lock)}
			synctest.Wait()
			if n := len(log.lines("conflict")) + len(log.lines(queue.ErrConflict.Error())); n != 1 {
				t.Errorf("%d lines at once, want 1", n)
			}
			time.Sleep(wait)
			count(t, &log, queue.ErrConflict)
			must(t, lease.Release(t.Context()))
			first := make(chan outcome)
			for _, lock := range locks {
				go func() { first <- <-lock }()
			}
			for range locks {
				if got := receive(t, "Lock", first); !got.returned {
					t.Errorf("Lock when the conflict is over: %+v", got)
				}
				l.Unlock()
			}
		})
	})
	t.Run("no permission", func(t *testing.T) {
		inBubble(t, func(t *testing.T, _ *zktest.Server, connect func(...session.Option) *session.Manager) {
			var log logbook
			m := connect(log.option())
			_, err := testserver.Session(t, m).Multi(t.Context(), &zk.CreateRequest{Path: path.Dir(lockPath), Acl: zk.WorldACL(zk.PermRead)})
			must(t, err)
			locks := outcomeOf(newMutex(t, m, lockPath).Locker(nil).Lock)
			time.Sleep(wait)
			count(t, &log, zk.ErrNoAuth)
			must(t, m.Close())
			receive(t, "Lock", locks)
		})
	})
}
