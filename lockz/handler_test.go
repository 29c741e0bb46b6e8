package lockz_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/lockz"
	"github.com/turnstile-go/turnstile/session"
)

func connect(tb testing.TB, opts ...session.Option) *session.Manager {
	tb.Helper()
	return testserver.Connect(tb, testserver.Server(tb).Addr(0), append([]session.Option{session.WithTimeout(testserver.Patience)}, opts...)...)
}

// The page is HTML or JSON as the request asks, and bad requests are refused.
func TestNegotiation(t *testing.T) {
	page := lockz.Handler(connect(t))
	const html, asJSON, plain = "text/html; charset=utf-8", "application/json", "text/plain; charset=utf-8"
	for _, c := range []struct {
		query, accept string
		code          int
		kind          string
	}{
		{"", "", 200, html},
		{"", "*/*", 200, html},
		{"", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", 200, html},
		{"", "application/json", 200, asJSON},
		{"", "Application/JSON; charset=utf-8", 200, asJSON},
		{"", "text/html;q=0.5, application/json", 200, html},
		{"", "image/png", 200, html},
		{"", ";;;", 200, html},
		{"?format=json", "text/html", 200, asJSON},
		{"?format=html", "application/json", 200, html},
		{"?refresh=5", "", 400, plain},
		{"?format=xml", "", 400, plain},
		{"?a=%zz", "", 400, plain},
		{"?foo=1", "", 400, plain},
		{"?format=json&foo", "", 400, plain},
		{"?format=json&format=html", "", 400, plain},
	} {
		w := get(page, c.query, c.accept)
		if w.Code != c.code || w.Header().Get("Content-Type") != c.kind {
			t.Errorf("%q, Accept %q: %d %s, want %d %s", c.query, c.accept, w.Code, w.Header().Get("Content-Type"), c.code, c.kind)
		}
		if w.Code == 200 && json.Valid(w.Body.Bytes()) != (c.kind == asJSON) {
			t.Errorf("%q, Accept %q: the body is not what the header says", c.query, c.accept)
		}
	}
}

func TestMethods(t *testing.T) {
	page := lockz.Handler(connect(t))
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"} {
		w := httptest.NewRecorder()
		page.ServeHTTP(w, httptest.NewRequest(method, "/debug/locks", nil))
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d, Allow %q", method, w.Code, w.Header().Get("Allow"))
		}
	}
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest(http.MethodHead, "/debug/locks", nil))
	if w.Code != 200 || w.Body.Len() != 0 || w.Header().Get("Content-Length") == "" {
		t.Errorf("HEAD: %d with %d bytes, %v", w.Code, w.Body.Len(), w.Header())
	}
}

// No cache keeps the page, and a browser loads and runs nothing for it.
func TestHeaders(t *testing.T) {
	page := lockz.Handler(connect(t))
	for _, query := range []string{"", "?format=json", "?format=no"} {
		h := get(page, query, "").Header()
		if h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Vary") != "Accept" {
			t.Errorf("%q: %v", query, h)
		}
	}
	if policy := get(page, "", "").Header().Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; style-src 'sha256-") {
		t.Error(policy)
	}
}

// Handler panics for what cannot be shown, as http.Handle does for a nil handler.
func TestHandlerPanics(t *testing.T) {
	for name, managers := range map[string][]*session.Manager{
		"none":                {},
		"nil":                 {connect(t), nil},
		"not made by Connect": {{}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			lockz.Handler(managers...)
		}()
	}
}

// Several managers are shown in order, each once. Several handlers of a manager show the same, and a
// hold once.
func TestSeveralManagersAndHandlers(t *testing.T) {
	a, b := connect(t), connect(t)
	id := func(m *session.Manager) string { return fmt.Sprintf("0x%x", uint64(testserver.Session(t, m).ID())) }
	first := lockz.Handler(a)
	lock(t, mutex(t, a, testserver.Path(t)), "")
	both := lockz.Handler(b, a, b)
	lock(t, mutex(t, b, testserver.Path(t)), "")
	if m := pageOf(t, first).Managers; len(m) != 1 || len(m[0].Holds) != 1 || m[0].Session.ID != id(a) {
		t.Errorf("the first page: %+v", m)
	}
	m := pageOf(t, both).Managers
	if len(m) != 2 || m[0].Session.ID != id(b) || m[1].Session.ID != id(a) || len(m[0].Holds) != 1 || len(m[1].Holds) != 1 {
		t.Errorf("both: %+v", m)
	}
}
