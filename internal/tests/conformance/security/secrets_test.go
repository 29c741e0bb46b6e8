package security

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"errors"
	"math/big"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/authority"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/lockz"
	"github.com/turnstile-go/turnstile/otelzk"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// soon tries again at once, because these tests wait only for faults.
var soon = session.WithBackoff(time.Millisecond, time.Millisecond)

// strike makes the i-th fault: connections cut at each step of a handshake and of an
// acquisition, and sessions expired.
func strike(ctx context.Context, p *zktest.Proxy, s *session.Session, i int) error {
	switch i {
	case 0:
		p.CutBefore(zktest.Any(zktest.OpCreate))
	case 1:
		p.CutAfterCommit(zktest.Any(zktest.OpCreate))
	case 2:
		p.CutBefore(zktest.Any(zktest.OpAuth))
		p.Disconnect()
	case 3:
		p.CutAfterCommit(zktest.Any(zktest.OpAuth))
		p.Disconnect()
	case 4:
		p.CutAfterCommit(zktest.Any(zktest.OpConnect))
		p.CutBefore(zktest.Any(zktest.OpGetChildren2))
		p.Disconnect()
	case 5:
		p.CutAfterCommit(zktest.Any(zktest.OpDelete))
	default:
		return p.Expire(ctx, s.ID())
	}
	return nil
}

const faults = 7

// endure takes and gives back a lock under each fault, before the lock is held and while it is held,
// and passes on every error. Where only the identity lets a client in, no error may be NoAuth.
func endure(t *testing.T, p *zktest.Proxy, m *session.Manager, l locker, see func(string, any)) {
	t.Helper()
	for i := range 2 * faults {
		ctx := expect.Patient(t)
		hit := func() { expect.NoError(t, strike(ctx, p, testserver.Session(t, m), i/2)) }
		if i%2 == 0 {
			hit()
		}
		err := l.Lock(ctx)
		see("Lock", err)
		expect.NoError(t, err)
		if i%2 == 1 {
			hit()
		}
		all, err := l.Contenders(ctx)
		see("Contenders", all)
		see("Contenders", err)
		if !errors.Is(err, zk.ErrNoNode) { // the lock may be lost, and its directory gone
			expect.NoError(t, err)
		}
		err = l.Unlock()
		see("Unlock", err)
		if err != nil && !errors.Is(err, session.ErrLost) && !errors.Is(err, queue.ErrReleasePending) {
			t.Fatalf("unlock: %v", err)
		}
	}
}

// Every type of lock goes on to work, across reconnects and new sessions, where only one identity has
// access. Neither its password nor the key of the TLS connection is in anything that is logged,
// returned, passed to hooks, in a span, a metric or a page of locks, or written to the server.
func TestSecrets(t *testing.T) {
	longtest.InCI(t)
	const user, password = "owner", "Xyzzy-plugh-31415"
	private := zk.DigestACL(zk.PermAll, user, password)
	var c capture
	spans, metrics := tracetest.NewSpanRecorder(), sdkmetric.NewManualReader()
	ours := authority.New(t, "ours")
	client := ours.Issue(t, "client", time.Now().Add(time.Hour))

	p := testserver.Proxy(t)
	opts := []session.Option{
		session.WithTimeout(testserver.Patience),
		soon,
		session.WithAuth("digest", []byte(user+":"+password)),
		session.WithACL(private...),
		session.WithTLS(&tls.Config{RootCAs: ours.Pool, Certificates: []tls.Certificate{client}}),
		session.WithLogger(c.logger()),
		session.WithTrace(testserver.EveryHook(c.see)),
		session.WithTrace(otelzk.New(
			otelzk.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))),
			otelzk.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(metrics))))),
	}
	secure := ours.Front(t, p.Addr())
	m := testserver.Connect(t, secure, opts...)
	page := lockz.Handler(m)
	look := plain(t, user+":"+password)
	for _, k := range kinds {
		root := testserver.Path(t)
		l, err := k.open(m, root+"/"+strings.ReplaceAll(k.name, " ", "-"))
		expect.NoError(t, err)
		endure(t, p, m, l, c.see)
		expect.NoError(t, l.Lock(expect.Patient(t)))
		for _, path := range tree(t, look, root) {
			data, _, err := look.Get(path)
			c.see(path, data)
			c.see(path, string(data))
			c.see(path, err)
		}
		c.see("lock", l)
		for _, format := range []string{"html", "json"} {
			answer := httptest.NewRecorder()
			page.ServeHTTP(answer, httptest.NewRequest("GET", "/?format="+format, nil))
			c.see("page", answer.Body.String())
		}
	}
	var measured metricdata.ResourceMetrics
	expect.NoError(t, metrics.Collect(t.Context(), &measured))
	c.see("metrics", measured)
	for _, span := range spans.Ended() {
		c.see("span", tracetest.SpanStubFromReadOnlySpan(span))
	}

	// The lines of an outage, and of a session that is opened without waiting.
	later, err := session.Open(p.Addr(), append(opts[:len(opts):len(opts)], session.WithTimeout(time.Second))...)
	expect.NoError(t, err)
	zktest.Eventually(t, testserver.Patience, "a notice", func() bool { return c.has("no connection to zookeeper") })
	expect.NoError(t, later.Close())
	c.see("Open", later)

	// An error says why, and no more.
	for why, wrong := range map[string]session.Option{
		"zk: client authentication failed": session.WithAuth("no-such-scheme", []byte(user+":"+password)),
		"certificate signed by unknown":    session.WithTLS(&tls.Config{Certificates: []tls.Certificate{client}}),
		"tls: certificate required":        session.WithTLS(&tls.Config{RootCAs: ours.Pool}),
		"session timeout -1ns":             session.WithTimeout(-1),
	} {
		ctx, cancel := context.WithCancel(expect.Patient(t))
		failed := make(chan error, 1)
		go func() {
			_, err := session.Connect(ctx, secure, append(opts[:len(opts):len(opts)], wrong)...)
			c.see("Connect", err)
			failed <- err
		}()
		zktest.Eventually(t, testserver.Patience, why, func() bool { return c.has(why) })
		cancel()
		if <-failed == nil {
			t.Errorf("%s: connected", why)
		}
	}
	expect.NoError(t, m.Close())
	for _, v := range []any{m.Status(), opts, opts[2], opts[4]} { // not m itself: goroutines of hooks may still change it
		c.see("value", v)
	}

	for _, proof := range []string{
		"zookeeper connection ended", "page: ", "metrics: ", "span: ", "Request: ", "Hold ended: ",
		"zookeeper session opened", "zookeeper session suspended", "zookeeper session reconnected",
		"zookeeper session lost", "zookeeper session closed", "no connection to zookeeper",
		"the server refuses the identity of scheme",
	} {
		if !c.has(proof) {
			t.Errorf("%q is not in what was captured: is all of it?", proof)
		}
	}
	c.search(t, "password", []byte(password))
	c.search(t, "identity", []byte(user+":"+password))
	key := client.PrivateKey.(*ecdsa.PrivateKey)
	scalar, err := key.Bytes()
	expect.NoError(t, err)
	c.search(t, "key", scalar)
	c.search(t, "key", []byte(new(big.Int).SetBytes(scalar).String()))
}
