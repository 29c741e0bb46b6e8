package lockz_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/lockz"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// Short names for the tests of this package.
var (
	must    = expect.NoError
	wantErr = expect.Match
)

const (
	timeout = 10 * time.Second
	known   = 30 * time.Millisecond // more than a wait lasts before it asks who is ahead
)

// world is a server in virtual time, and two processes: ours, which has a page, and another one.
type world struct {
	*testing.T
	server    *zktest.Server
	us, other *session.Manager
	page      http.Handler
}

func inBubble(t *testing.T, f func(t *world), opts ...session.Option) {
	t.Helper()
	inBubbleFrom(t, time.Time{}, f, opts...)
}

// inBubbleFrom is inBubble that begins at a time.
func inBubbleFrom(t *testing.T, at time.Time, f func(t *world), opts ...session.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(at))
		w := &world{T: t, server: zktest.Start(t)}
		w.us, w.other = w.connect(opts...), w.connect()
		w.page = lockz.Handler(w.us)
		f(w)
	})
}

func (t *world) connect(opts ...session.Option) *session.Manager {
	t.Helper()
	m, err := session.Connect(t.Context(), "zk-1:2181/app", append([]session.Option{
		session.WithTimeout(timeout), session.WithTickTime(2 * time.Second), session.WithDialer(t.server.Dialer()),
		session.WithLogger(slog.New(slog.DiscardHandler)),
	}, opts...)...)
	must(t, err)
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// cut cuts the servers off.
func (t *world) cut() {
	t.server.Blackhole(zktest.Both)
	t.server.Refuse(true)
}

func (t *world) expire(m *session.Manager) {
	t.Helper()
	must(t, t.server.Expire(t.Context(), testserver.Session(t, m).ID()))
}

// get returns the answer to a GET of the page.
func get(page http.Handler, query, accept string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/debug/locks"+query, nil)
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	w := httptest.NewRecorder()
	page.ServeHTTP(w, r)
	return w
}

// pageOf returns the page, which must be valid JSON without unknown fields.
func pageOf(tb testing.TB, page http.Handler) lockz.Page {
	tb.Helper()
	w := get(page, "", "application/json")
	var p lockz.Page
	d := json.NewDecoder(w.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil || w.Code != http.StatusOK {
		tb.Fatalf("status %d: %v", w.Code, err)
	}
	return p
}

// now returns our manager as the page shows it, and fails the test if the page took any time.
func (t *world) now() lockz.Manager {
	t.Helper()
	before := time.Now()
	m := pageOf(t, t.page).Managers[0]
	if took := time.Since(before); took != 0 { // in virtual time
		t.Errorf("the page took %v", took)
	}
	return m
}

// shows compares what the page shows of our manager when everything is at rest.
func (t *world) shows(want ...string) {
	t.Helper()
	synctest.Wait()
	if diff := gocmp.Diff(want, lines(t.now())); diff != "" {
		t.Errorf("the page (-want +got):\n%s", diff)
	}
}

// lines returns a line for each hold, wait, election and loss: its facts without times.
func lines(m lockz.Manager) []string {
	var out []string
	for _, h := range m.Holds {
		out = append(out, describe("holds", h.Kind, h.Path, h.Weight, h.Label))
	}
	for _, w := range m.Waits {
		line := describe("waits", w.Kind, w.Path, w.Weight, w.Label)
		if w.Try {
			line += " try"
		}
		if b := w.Behind; b != nil {
			line += fmt.Sprintf(", %d ahead, behind %q here=%v", b.Ahead, cmp.Or(b.Label, b.ID), b.Here)
		}
		if w.AheadHere > 0 {
			line += fmt.Sprintf(", %d in this process", w.AheadHere)
		}
		out = append(out, line)
	}
	for _, e := range m.Elections {
		leader := cmp.Or(e.Leader, "not known")
		if e.Here {
			leader = "this process"
		}
		out = append(out, fmt.Sprintf("election %s, leader %s", e.Path, leader))
	}
	for _, l := range m.Losses {
		out = append(out, describe("lost", l.Kind, l.Path, 1, l.Label))
	}
	return out
}

func describe(what, kind, path string, weight int, label string) string {
	words := []string{what, kind, path}
	if weight > 1 {
		words = append(words, fmt.Sprint("x", weight))
	}
	if label != "" {
		words = append(words, label)
	}
	return strings.Join(words, " ")
}

func labelled(ctx context.Context, text string) context.Context { return queue.WithLabel(ctx, text) }

func mutex(tb testing.TB, m *session.Manager, path string, opts ...zklock.Option) *zklock.Mutex {
	tb.Helper()
	mx, err := zklock.New(m, path, opts...)
	must(tb, err)
	return mx
}

func newRW(tb testing.TB, m *session.Manager, path string) *rwlock.RWMutex {
	tb.Helper()
	rw, err := rwlock.New(m, path)
	must(tb, err)
	return rw
}

func newSem(tb testing.TB, m *session.Manager, path string, limit int, opts ...semaphore.Option) *semaphore.Semaphore {
	tb.Helper()
	s, err := semaphore.New(m, path, limit, opts...)
	must(tb, err)
	return s
}

// acquirer is a lock, or a contender of another process.
type acquirer interface {
	Acquire(ctx context.Context) (*queue.Lease, error)
}

// contender is one whose node has data of its own.
type contender struct {
	q *queue.Queue
	r queue.Request
}

func newContender(tb testing.TB, m *session.Manager, path string, kind *queue.Kind, data string) contender {
	tb.Helper()
	q, err := queue.New(m, path)
	must(tb, err)
	return contender{q, queue.Request{Kind: kind, Data: []byte(data)}}
}

func (c contender) Acquire(ctx context.Context) (*queue.Lease, error) { return c.q.Acquire(ctx, c.r) }

// lock takes a lock until the end of the test.
func lock(tb testing.TB, mx acquirer, label string) *queue.Lease {
	tb.Helper()
	lease, err := mx.Acquire(labelled(tb.Context(), label))
	must(tb, err)
	tb.Cleanup(func() { _ = lease.Release(context.Background()) })
	return lease
}

// wait begins an acquisition that does not end before the test.
func (t *world) wait(mx acquirer, label string) {
	t.Helper()
	begin(t, func(ctx context.Context) error {
		lease, err := mx.Acquire(labelled(ctx, label))
		if err == nil {
			_ = lease.Release(context.Background())
		}
		return err
	})
	synctest.Wait() // it has its place
}

// begin calls f in a goroutine, which must have ended by the end of the test.
func begin(tb testing.TB, f func(ctx context.Context) error) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := f(ctx); err != nil && ctx.Err() == nil {
			tb.Error(err)
		}
	}()
	tb.Cleanup(func() {
		cancel()
		<-done
	})
}

func TestMain(m *testing.M) { testserver.Main(m) }
