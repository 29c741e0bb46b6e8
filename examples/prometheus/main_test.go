package main

import (
	"bytes"
	"context"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/exampletest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/otelzk"
	"github.com/turnstile-go/turnstile/session"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

func TestShow(t *testing.T) {
	var out bytes.Buffer
	expect.NoError(t, run(t.Context(), &out, testserver.Server(t).ConnectString(), ""))
	for _, want := range []string{
		`zklock_held_count{zklock_kind="election",zklock_name="scheduler"} 1`,
		`zklock_held_count{zklock_kind="mutex",zklock_name="invoice"} 1`,
		`zklock_hold_oldest_seconds{zklock_kind="mutex",zklock_name="invoice"} `,
		`zklock_session_status{zklock_session_state="connected"} 1`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in\n%s", want, &out)
		}
	}
}

func TestSIGTERM(t *testing.T) {
	exampletest.Stops(t, lockPath, 0, "-zk", testserver.Server(t).ConnectString(), "-listen", "localhost:0")
}

func TestWrongServer(t *testing.T) { exampletest.WrongServer(t, exampletest.ZK) }

// scrape returns the lines of the page that are samples.
func scrape(t *testing.T, read func() (string, error)) []string {
	t.Helper()
	text, err := read()
	expect.NoError(t, err)
	var samples []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			samples = append(samples, strings.TrimSpace(line))
		}
	}
	return samples
}

// page returns what reads the page, and hooks whose metrics are on it.
func page(t *testing.T) (read func() (string, error), hooks session.Trace) {
	t.Helper()
	handler, meters, err := newPage()
	expect.NoError(t, err)
	t.Cleanup(func() { _ = meters.Shutdown(context.Background()) })
	return func() (string, error) {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
		text, err := io.ReadAll(answer.Body)
		return string(text), err
	}, otelzk.New(otelzk.WithMeterProvider(meters))
}
