package main

import (
	"bytes"
	"context"
	"io"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/exampletest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/otelzk"
	"github.com/turnstile-go/turnstile/session"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

func TestShow(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out, testserver.Server(t).ConnectString(), ""); err != nil {
		t.Fatal(err)
	}
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
	exampletest.Stops(t, lockPath, "-zk", testserver.Server(t).ConnectString(), "-listen", "localhost:0")
}

func TestWrongServer(t *testing.T) { exampletest.WrongServer(t, exampletest.ZK) }

// scrape returns the lines of the page that are samples.
func scrape(t *testing.T, read func() (string, error)) []string {
	t.Helper()
	text, err := read()
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = meters.Shutdown(context.Background()) })
	return func() (string, error) {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
		text, err := io.ReadAll(answer.Body)
		return string(text), err
	}, otelzk.New(otelzk.WithMeterProvider(meters))
}

// Prometheus reads each counter with the value 0 before the first event: the counters of the session before there is a
// session, and those of a kind of lock while its first call is under way.
func TestCountersBeginAtZero(t *testing.T) {
	read, hooks := page(t)
	zero(t, scrape(t, read), `zklock_session_transitions_total{zklock_session_state="%"}`, "connecting", "connected", "suspended", "lost", "closed")
	_, end := hooks.Acquire(t.Context(), session.AcquireInfo{Kind: "read"})
	before := scrape(t, read)
	zero(t, before, `zklock_losses_total{error_type="%",zklock_kind="read"}`,
		"session_expired", "session_uncertain", "session_replaced", "session_suspended", "node_deleted", "lost")
	zero(t, before, `zklock_acquisitions_total{zklock_kind="read",zklock_outcome="%"}`, "acquired", "busy", "settled", "canceled", "timeout", "failed")
	zero(t, before, `zklock_releases_total{zklock_kind="read",zklock_outcome="%"}`, "released", "late", "lost", "failed")
	end(session.AcquireResult{})

	// Whatever else ends in _total has been 0 once too.
	began := make(map[string]bool)
	for _, sample := range before {
		began[regexp.MustCompile(`^[^ ]+`).FindString(sample)] = true
	}
	for _, sample := range scrape(t, read) {
		if series := regexp.MustCompile(`^[^ ]+`).FindString(sample); strings.Contains(series, "_total{") && !began[series] {
			t.Errorf("%s was not there before", series)
		}
	}
}

// zero requires a sample of 0 for each value of a label, which takes the place of the percent sign.
func zero(t *testing.T, samples []string, series string, values ...string) {
	t.Helper()
	for _, v := range values {
		want, found := strings.Replace(series, "%", v, 1)+" 0", false
		for _, s := range samples {
			found = found || s == want
		}
		if !found {
			t.Errorf("no %s", want)
		}
	}
}
