package lockz_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/lockz"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// must is short for the tests of this package.
var must = expect.NoError

const timeout = 10 * time.Second

// process is a manager as another process has it, and its page. It is in a bubble of synctest.
type process struct {
	*session.Manager
	page http.Handler
}

func newProcess(t *testing.T, srv *zktest.Server, opts ...session.Option) *process {
	t.Helper()
	m := newOther(t, srv, opts...)
	return &process{m, lockz.Handler(m)}
}

// newOther returns a manager as newProcess does, which no page records: it stands for another process.
func newOther(t *testing.T, srv *zktest.Server, opts ...session.Option) *session.Manager {
	t.Helper()
	m, err := session.Connect(t.Context(), "zk-1:2181/app", append([]session.Option{session.WithTimeout(timeout),
		session.WithTickTime(2 * time.Second), session.WithDialer(srv.Dialer()),
		session.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))}, opts...)...)
	must(t, err)
	t.Cleanup(func() { _ = m.Close() })
	return m
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

// shown returns the only manager of a page when everything in the bubble is at rest.
func (p *process) shown(t *testing.T) lockz.Manager {
	t.Helper()
	synctest.Wait()
	return pageOf(t, p.page).Managers[0]
}

// known is more than a wait lasts before it asks who is ahead.
const known = 30 * time.Millisecond

// lines returns a line for each hold, wait and loss: its facts without times.
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

// begin calls f in a goroutine, which must have ended by the end of the test.
func begin(t *testing.T, f func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := f(ctx); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}
