// Prometheus shows the metrics of locks as Prometheus gets them. The program takes a lock and leads an election, and
// prints the answer of its page /metrics meanwhile. The rules for alerts and the dashboard in docs/prometheus are for
// these metrics.
//
//	go run .                          # in this directory; with a ZooKeeper in the process
//	go run . -zk host:2181            # with a ZooKeeper of yours
//	go run . -listen localhost:9464   # goes on until Ctrl-C, for a Prometheus that reads the page
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/otelzk"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

const (
	lockPath     = "/prometheus/lock"
	electionPath = "/prometheus/election"
)

func main() {
	servers := flag.String("zk", "", "connect string of a ZooKeeper, `host:port`; by default a server in this process")
	listen := flag.String("listen", "", "`address` of the page, which then stays until the program is told to end")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, *servers, *listen); err != nil {
		fmt.Fprintln(os.Stderr, "prometheus:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, servers, listen string) error {
	if servers == "" {
		server, err := zktest.New()
		if err != nil {
			return err
		}
		defer server.Close()
		servers = server.ConnectString()
	}
	page, meters, err := newPage()
	if err != nil {
		return err
	}
	defer meters.Shutdown(context.WithoutCancel(ctx)) //nolint:errcheck // it has nothing to send
	address, end, err := serve(page, listen)
	if err != nil {
		return err
	}
	defer end()
	m, err := connect(ctx, servers, session.WithTrace(otelzk.New(otelzk.WithMeterProvider(meters))))
	if err != nil {
		return err
	}
	defer m.Close()
	return hold(ctx, m, func(ctx context.Context) error {
		if err := show(ctx, out, address); err != nil || listen == "" {
			return err
		}
		fmt.Fprintln(out, "\nthe page stays at", address)
		<-ctx.Done()
		return nil
	})
}

// newPage returns the page /metrics, and the provider of the metrics on it.
func newPage() (http.Handler, *metric.MeterProvider, error) {
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo())
	if err != nil {
		return nil, nil, err
	}
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), metric.NewMeterProvider(metric.WithReader(reader)), nil
}

// serve serves the page until end is called, by default at a free port.
func serve(page http.Handler, listen string) (address string, end func(), err error) {
	if listen == "" {
		listen = "localhost:0"
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return "", nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", page)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(l) // until it is closed
	}()
	return "http://" + l.Addr().String() + "/metrics", func() { server.Close(); <-ended }, nil
}

// hold calls f while the program leads the election and holds the lock.
func hold(ctx context.Context, m *session.Manager, f func(context.Context) error) error {
	candidate, err := election.New(m, electionPath, election.WithName("scheduler"))
	if err != nil {
		return err
	}
	lock, err := zklock.New(m, lockPath, zklock.WithName("invoice"))
	if err != nil {
		return err
	}
	done := errors.New("done")
	err = candidate.Run(ctx, func(ctx context.Context) error {
		if err := lock.Do(ctx, f); err != nil {
			return err
		}
		return done
	})
	if errors.Is(err, done) {
		return nil
	}
	return err
}

// connect gives up after some seconds, so that a wrong -zk shows. Without a deadline, Connect
// waits until there is a server.
func connect(ctx context.Context, servers string, hooks session.Option) (*session.Manager, error) {
	ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
	defer cancel()
	return session.Connect(ctx, servers, hooks, session.WithLogger(slog.New(slog.DiscardHandler)))
}

// show prints the page, as Prometheus gets it, without comments and buckets.
func show(ctx context.Context, out io.Writer, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") && !strings.Contains(line, "_bucket{") {
			fmt.Fprint(out, line)
		}
	}
	return err
}
