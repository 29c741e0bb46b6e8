// Tracing shows three workers that want one lock as OpenTelemetry sees them. Each worker has a
// session and a service name of its own, as if it were another process. The program prints a
// tree of spans for each worker, in which every wait names the worker that was ahead, and then
// the metrics.
//
//	go run .                       # in this directory; with a ZooKeeper in the process
//	go run . -zk host:2181         # with a ZooKeeper of yours
//	OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 go run .    # spans and metrics to a collector, by OTLP over HTTP
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/otelzk"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

const (
	workers  = 3
	lockPath = "/tracing/lock"
	work     = 50 * time.Millisecond // of each worker, under the lock
)

func main() {
	servers := flag.String("zk", "", "connect string of a ZooKeeper, `host:port`; by default a server in this process")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, *servers); err != nil {
		fmt.Fprintln(os.Stderr, "tracing:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, servers string) error {
	if servers == "" {
		server, err := zktest.New()
		if err != nil {
			return err
		}
		defer server.Close()
		servers = server.ConnectString()
	}
	// The links between processes are made by OpenTelemetry's global propagator, as those between services are.
	otel.SetTextMapPropagator(propagation.TraceContext{})
	t, err := newTelemetry(ctx)
	if err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	for i := range workers {
		g.Go(func() error { return worker(gctx, t, servers, fmt.Sprintf("worker %d", i+1)) })
	}
	err = g.Wait()
	last, cancel := lastWords(ctx)
	defer cancel()
	return errors.Join(err, t.finish(last, out))
}

// worker does its work once, under the lock.
func worker(ctx context.Context, t *telemetry, servers, name string) (err error) {
	spans, err := t.tracers(ctx, name)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := lastWords(ctx)
		defer cancel()
		err = errors.Join(err, spans.Shutdown(ctx)) // which sends them
	}()
	// This line is all that a lock takes. Without options it uses the global providers.
	hooks := session.WithTrace(otelzk.New(otelzk.WithTracerProvider(spans), otelzk.WithMeterProvider(t.meters)))
	m, err := connect(ctx, servers, hooks)
	if err != nil {
		return err
	}
	defer m.Close()
	lock, err := zklock.New(m, lockPath)
	if err != nil {
		return err
	}

	// A span of the program itself. The spans of the lock become its children by the context.
	tracer := spans.Tracer("example")
	ctx, span := tracer.Start(ctx, "order")
	defer span.End()
	return lock.Do(ctx, func(ctx context.Context) error { return charge(ctx, tracer) })
}

// lastWords returns a context for sending the last spans and metrics, also after ctx has ended.
// Its deadline is for a collector that does not answer.
func lastWords(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
}

// connect gives up after some seconds, so that a wrong -zk shows. Without a deadline, Connect
// waits until there is a server.
func connect(ctx context.Context, servers string, hooks session.Option) (*session.Manager, error) {
	ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
	defer cancel()
	return session.Connect(ctx, servers, hooks, session.WithLogger(slog.New(slog.DiscardHandler)))
}

func charge(ctx context.Context, tracer trace.Tracer) error {
	ctx, span := tracer.Start(ctx, "charge")
	defer span.End()
	select {
	case <-time.After(work):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
