package lockz_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/lockz"
	"github.com/turnstile-go/turnstile/session"
)

// idle returns a manager without a connection.
func idle(tb testing.TB) *session.Manager {
	tb.Helper()
	m, err := session.Open("127.0.0.1:1", session.WithLogger(slog.New(slog.DiscardHandler)))
	must(tb, err)
	tb.Cleanup(func() { _ = m.Close() })
	return m
}

// The page is HTML or JSON as the request asks, and bad requests are refused. No cache keeps it, and a browser loads and runs
// nothing for it.
func TestRequests(t *testing.T) {
	page := lockz.Handler(idle(t))
	const html, asJSON, plain = "text/html; charset=utf-8", "application/json", "text/plain; charset=utf-8"
	for _, c := range []struct {
		method, query, accept string
		code                  int
		kind                  string
	}{
		{"GET", "", "", 200, html},
		{"GET", "", "*/*", 200, html},
		{"GET", "", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", 200, html},
		{"GET", "", "application/json", 200, asJSON},
		{"GET", "", "Application/JSON; charset=utf-8", 200, asJSON},
		{"GET", "", "text/html;q=0.5, application/json", 200, html},
		{"GET", "", "image/png", 200, html},
		{"GET", "", ";;;", 200, html},
		{"GET", "?format=json", "text/html", 200, asJSON},
		{"GET", "?format=html", "application/json", 200, html},
		{"HEAD", "", "", 200, html},
		{"GET", "?refresh=5", "", 400, plain},
		{"GET", "?format=xml", "", 400, plain},
		{"GET", "?a=%zz", "", 400, plain},
		{"GET", "?foo=1", "", 400, plain},
		{"GET", "?format=json&foo", "", 400, plain},
		{"GET", "?format=json&format=html", "", 400, plain},
		{"POST", "", "", 405, plain},
		{"PUT", "", "", 405, plain},
		{"DELETE", "", "", 405, plain},
		{"OPTIONS", "", "", 405, plain},
	} {
		r := httptest.NewRequest(c.method, "/debug/locks"+c.query, nil)
		r.Header.Set("Accept", c.accept)
		w := httptest.NewRecorder()
		page.ServeHTTP(w, r)
		h, body := w.Header(), w.Body.Bytes()
		if w.Code != c.code || h.Get("Content-Type") != c.kind {
			t.Errorf("%+v: %d %s", c, w.Code, h.Get("Content-Type"))
		}
		if h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Vary") != "Accept" {
			t.Errorf("%+v: %v", c, h)
		}
		if allow := h.Get("Allow"); (c.code == http.StatusMethodNotAllowed) != (allow == "GET, HEAD") {
			t.Errorf("%+v: Allow %q", c, allow)
		}
		policy := h.Get("Content-Security-Policy")
		if strings.HasPrefix(policy, "default-src 'none'; style-src 'sha256-") != (c.kind == html) {
			t.Errorf("%+v: policy %q", c, policy)
		}
		switch {
		case c.method == "HEAD":
			if len(body) != 0 || h.Get("Content-Length") == "" {
				t.Errorf("HEAD: %d bytes, %v", len(body), h)
			}
		case json.Valid(body) != (c.kind == asJSON):
			t.Errorf("%+v: the body is not what the header says", c)
		}
	}
}

// Handler panics for what cannot be shown, as http.Handle does for a nil handler.
func TestHandlerPanics(t *testing.T) {
	for name, managers := range map[string][]*session.Manager{
		"none": {}, "nil": {idle(t), nil}, "not made by Connect": {{}},
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
