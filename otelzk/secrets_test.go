package otelzk_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/otelzk"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// No span and no metric has a password, across reconnects and sessions. Another test checks that hooks do not get it. This
// test checks that only what hooks get is recorded.
func TestSecretsAreNotRecorded(t *testing.T) {
	const user, password = "owner", "Xyzzy-plugh-31415"
	tel := newTelemetry()
	proxy := testserver.Proxy(t)
	m := testserver.Connect(t, proxy.Addr(), session.WithTimeout(testserver.Patience), session.WithBackoff(time.Millisecond, time.Millisecond),
		session.WithTrace(otelzk.New(tel.opts...)), session.WithAuth("digest", []byte(user+":"+password)),
		session.WithACL(zk.DigestACL(zk.PermAll, user, password)...))
	dir := testserver.Path(t)
	mx, err := zklock.New(m, dir)
	must(t, err)
	lockAgain := func() {
		must(t, mx.Lock(patient(t)))
		must(t, mx.Unlock())
	}
	lockAgain()
	proxy.CutAfterCommit(zktest.Any(zktest.OpCreate))
	lockAgain()
	must(t, mx.Lock(patient(t)))
	must(t, proxy.Expire(patient(t), testserver.Session(t, m).ID()))
	zktest.Eventually(t, testserver.Patience, "the loss", func() bool { return !mx.Held() })

	must(t, m.Close())

	var recorded strings.Builder
	ended := tel.spans.Ended()
	for _, span := range ended {
		fmt.Fprintf(&recorded, "%+v\n", tracetest.SpanStubFromReadOnlySpan(span))
	}
	var metrics metricdata.ResourceMetrics
	must(t, tel.reader.Collect(t.Context(), &metrics))
	fmt.Fprintf(&recorded, "%+v\n", metrics)
	if len(ended) < 6 || len(metrics.ScopeMetrics) == 0 || !strings.Contains(recorded.String(), dir) {
		t.Fatalf("%d spans and %d sets of metrics: is that all?", len(ended), len(metrics.ScopeMetrics))
	}
	if i := strings.Index(recorded.String(), password); i >= 0 {
		t.Errorf("the password is recorded: %.300q", recorded.String()[max(0, i-100):])
	}
}
