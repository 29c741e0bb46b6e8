package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/lockz"
	"github.com/turnstile-go/turnstile/otelzk"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/schedule"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// grace is how long the requests under way have at a shutdown.
const grace = 5 * time.Second

var errStopping = errors.New("replica is shutting down")

// service is one replica.
type service struct {
	config
	store
	m         *session.Manager
	customers *zklock.Keyed // a lock for each customer
	shipping  *election.Election
	reports   *schedule.Job
	approve   func(ctx context.Context, o order) error // asks the bank

	requests  net.Listener
	url       string
	operators string
	handler   http.Handler
	stopping  atomic.Bool
	closers   []func() error // the last one first
}

// open opens all that a replica has, and serves the operators. It does not wait for ZooKeeper: until there is a session,
// the replica is not ready.
func open(ctx context.Context, c config) (_ *service, err error) {
	s := &service{config: c, approve: func(context.Context, order) error { return nil }}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	t, err := newTelemetry(ctx)
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, t.shutdown)
	if s.store, err = openStore(ctx, c.db); err != nil {
		return nil, err
	}
	s.closers = append(s.closers, s.store.Close)
	hooks := otelzk.New(otelzk.WithTracerProvider(t.tracers), otelzk.WithMeterProvider(t.meters))
	if s.m, err = session.Open(c.zk, session.WithTimeout(c.timeout), session.WithTrace(hooks)); err != nil {
		return nil, err
	}
	s.closers = append(s.closers, s.m.Close)

	pages := http.NewServeMux()
	pages.Handle("/metrics", t.page)
	pages.Handle("/debug/locks", lockz.Handler(s.m)) // before the first lock
	pages.HandleFunc("/readyz", s.ready)
	pages.HandleFunc("/livez", func(http.ResponseWriter, *http.Request) {}) // does not ask ZooKeeper
	l, err := net.Listen("tcp", c.operators)
	if err != nil {
		return nil, err
	}
	operators := &http.Server{Handler: pages, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = operators.Serve(l) }() // until it is closed
	s.operators = "http://" + l.Addr().String()
	s.closers = append(s.closers, operators.Close)

	if s.requests, err = net.Listen("tcp", c.listen); err != nil {
		return nil, err
	}
	s.url = "http://" + s.requests.Addr().String()
	s.closers = append(s.closers, func() error { s.requests.Close(); return nil }) // it may be closed
	s.handler = otelhttp.NewHandler(s.mux(), "orders", otelhttp.WithTracerProvider(t.tracers), otelhttp.WithMeterProvider(t.meters))

	customers, err1 := zklock.NewKeyed(s.m, "/service/customers", zklock.WithName("customer"), zklock.WithLocalHandover(8))
	shipping, err2 := election.New(s.m, "/service/shipping", election.WithName("shipping"), election.WithID(s.url), election.WithTermEnd(termEnd))
	reports, err3 := schedule.New(s.m, "/service/report", schedule.WithName("report"))
	s.customers, s.shipping, s.reports = customers, shipping, reports
	return s, errors.Join(err1, err2, err3)
}

// close ends what open has begun, in the opposite order: the locks are given up before the database is closed, and the
// last spans are sent at the end.
func (s *service) close() (err error) {
	for i := len(s.closers) - 1; i >= 0; i-- {
		err = errors.Join(err, s.closers[i]())
	}
	return err
}

// ready is the page /readyz. A replica that is disconnected for a moment still has its locks and is ready.
func (s *service) ready(w http.ResponseWriter, _ *http.Request) {
	st := s.m.Status()
	if s.stopping.Load() || st.State != session.Connected && st.State != session.Suspended {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	fmt.Fprintf(w, "stopping=%t zookeeper=%s %v\n", s.stopping.Load(), st.State, st.Failure)
}

// run serves until ctx ends or a part fails, and shuts the replica down.
func (s *service) run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, s.close()) }()
	// These contexts outlive ctx: at a shutdown, one thing ends after the other.
	background, endBackground := context.WithCancel(context.WithoutCancel(ctx))
	defer endBackground()
	requests, endRequests := context.WithCancelCause(context.WithoutCancel(ctx))
	defer endRequests(nil)
	srv := &http.Server{
		Handler:           s.handler,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ReadHeaderTimeout: 10 * time.Second,
	}
	parts, failed := errgroup.WithContext(background)
	parts.Go(func() error { return s.shipping.Run(failed, s.lead) })
	parts.Go(func() error { return s.cron(failed) })
	parts.Go(func() error {
		if err := srv.Serve(s.requests); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	select {
	case <-ctx.Done():
	case <-failed.Done():
	}

	slog.Info("shutting down", "url", s.url)
	s.stopping.Store(true) // 1. load balancers take the replica out
	select {
	case <-time.After(s.drain):
	case <-failed.Done():
	}
	// 2. The requests under way finish. Those that still wait for a lock after the grace are answered 503.
	defer time.AfterFunc(grace, func() { endRequests(errStopping) }).Stop()
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*grace)
	defer cancel()
	err = srv.Shutdown(patience)
	endBackground() // 3. another replica leads, and runs the job
	return errors.Join(err, parts.Wait())
} // 4. close

// status returns the HTTP status for an error. The text of an error can name servers and files, so it is for the log only.
func status(err error) int {
	for _, again := range []error{
		session.ErrLost, session.ErrClosed, session.ErrTooManyNodes, queue.ErrMaxWait, queue.ErrRevoked,
		errStale, errStopping, context.DeadlineExceeded, context.Canceled,
	} {
		if errors.Is(err, again) {
			return http.StatusServiceUnavailable
		}
	}
	return http.StatusInternalServerError
}
