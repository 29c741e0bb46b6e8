package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/exampletest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

func TestTree(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	// Each wait names the worker that was ahead, by its service. One that is over before the server has answered cannot.
	var text string
	waits, named := 1, 0
	for tries := 0; named < waits && tries < 20; tries++ {
		var out bytes.Buffer
		expect.NoError(t, run(t.Context(), &out, testserver.Server(t).ConnectString()))
		text = out.String()
		waits, named = strings.Count(text, "── zklock watch "), strings.Count(text, "waits for worker ")
	}
	if named != waits {
		t.Errorf("%d of %d waits name the other", named, waits)
	}
	for _, want := range []string{
		"worker 1:\norder", "worker 2:\norder", "worker 3:\norder",
		"├── zklock lock ", "0 ahead, acquired", "│   ├── create / ", "├── charge ",
		"└── zklock unlock ", "    └── delete / ",
		"zklock.acquire.duration        3, mean ", "zklock.held.count              0 ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	if t.Failed() {
		t.Log("\n" + text)
	}
}

func TestCollector(t *testing.T) {
	var mu sync.Mutex
	posted := map[string]int{}
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		defer mu.Unlock()
		posted[r.URL.Path]++
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	var out bytes.Buffer
	expect.NoError(t, run(t.Context(), &out, testserver.Server(t).ConnectString()))
	mu.Lock()
	defer mu.Unlock()
	if posted["/v1/traces"] < workers || posted["/v1/metrics"] == 0 {
		t.Errorf("the collector got %v", posted)
	}
	if text := out.String(); strings.Contains(text, "── zklock lock") || !strings.Contains(text, "zklock.acquire.duration") {
		t.Errorf("printed:\n%s", text)
	}
}

func TestEnds(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	exampletest.Ends(t, lockPath, exampletest.ZK)
}
