// Httpserver sells from a stock that several processes share, kept in an SQLite file:
//
//	POST /stock/deduct?id=apple  takes one away: 200 and how many remain, 409 when sold out
//	GET  /stock?id=apple         says how many remain
//
// Requests to all processes wait in one queue, in order of arrival. A request leaves the queue
// when its client goes away. The answer is 503, and nothing was written, when a request has waited
// for two seconds, when the lock is lost, when too many requests wait already, and when the server
// shuts down. See shop.go for how, and stock.go for the part of the database.
//
//	go run .                                             # a demonstration: three processes, 200 clients
//	go run . -listen :8080 -sell apple=100               # serve
//	go run . -listen :8080 -zk host:2181 -db stock.db    # one of several processes
//	go run . -listen :8080 -debug localhost:6060         # with http://localhost:6060/debug/locks for operators
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
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/turnstile-go/turnstile/lockz"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

type config struct {
	zk      string
	listen  string
	debug   string
	db      string
	timeout time.Duration
	sell    map[string]int
}

func main() {
	c := config{sell: map[string]int{}}
	var level slog.LevelVar
	flag.StringVar(&c.zk, "zk", "", "connect string of a ZooKeeper, `host:port`; by default a server in this process")
	flag.StringVar(&c.listen, "listen", "", "serve at this `address`; by default run a demonstration and end")
	flag.StringVar(&c.debug, "debug", "", "serve /debug/locks at this `address`, which only operators should reach; by default nowhere")
	flag.StringVar(&c.db, "db", "", "the SQLite `file`; by default one that goes away at the end")
	flag.Func("sell", "put an item on sale, `id=n`, if it is not yet", func(v string) (err error) {
		id, n, _ := strings.Cut(v, "=")
		c.sell[id], err = strconv.Atoi(n)
		return err
	})
	flag.DurationVar(&c.timeout, "timeout", 10*time.Second, "ZooKeeper session timeout: how long others wait for a process that died")
	flag.TextVar(&level, "log", &level, "lowest `level` to log: debug, info, warn, error")
	flag.Parse()
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: &level})))

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, os.Stdout, c); err != nil {
		slog.Error("httpserver", "err", err)
		os.Exit(1)
	}
}

// run fills in what was not given, and serves or demonstrates.
func run(ctx context.Context, out io.Writer, c config) error {
	if c.zk == "" {
		if c.db != "" {
			// Fencing tokens grow as long as ZooKeeper keeps its data. A new server begins
			// with small ones, which the rows of an old database refuse.
			return errors.New("-db needs -zk: the tokens of a new server are too small for an old database")
		}
		server, err := zktest.New()
		if err != nil {
			return err
		}
		defer server.Close()
		c.zk = server.ConnectString()
	}
	if c.db == "" {
		dir, err := os.MkdirTemp("", "httpserver-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		c.db = filepath.Join(dir, "stock.db")
	}
	if c.listen == "" {
		return demo(ctx, out, c)
	}
	return serve(ctx, out, c)
}

const (
	// grace is how long the requests under way have when the server shuts down.
	grace = 5 * time.Second
	// maxRequests is how many requests of a process may hold or wait for a lock at a time. Each
	// of them is a node on the ZooKeeper servers. Further requests are answered 503 at once.
	maxRequests = 1000
	// pathBytes bounds the bytes of those nodes' paths: the default.
	pathBytes = 1 << 20
)

var errStopping = errors.New("server is shutting down")

// serve serves until ctx ends, and then lets the requests under way finish.
func serve(ctx context.Context, out io.Writer, c config) error {
	// A wrong -zk shows after some seconds. Without a deadline, Connect waits until there is a
	// server.
	connecting, cancel := context.WithTimeout(ctx, 8*time.Second)
	m, err := session.Connect(connecting, c.zk, session.WithTimeout(c.timeout), session.WithNodeLimits(maxRequests, pathBytes))
	cancel()
	if err != nil {
		return err
	}
	defer m.Close()
	if c.debug != "" {
		page, err := debug(m, c.debug)
		if err != nil {
			return err
		}
		defer page.Close()
	}
	db, err := openStock(ctx, c.db)
	if err != nil {
		return err
	}
	defer db.Close()
	for id, n := range c.sell {
		if err := db.fill(ctx, id, n); err != nil {
			return err
		}
	}
	shop, err := newShop(m, db)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", c.listen)
	if err != nil {
		return err
	}

	// When ctx ends, the requests under way have some more time, until this context ends.
	requests, endRequests := context.WithCancelCause(context.Background())
	defer endRequests(nil)
	srv := &http.Server{
		Handler:           shop.handler(),
		BaseContext:       func(net.Listener) context.Context { return requests },
		ReadHeaderTimeout: 10 * time.Second,
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	// The demonstration and the tests read the address from this line.
	fmt.Fprintf(out, "listening on http://%s\n", l.Addr())

	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	slog.Info("shutting down")
	// A request that is still in the queue then leaves it, and is answered 503.
	defer time.AfterFunc(grace, func() { endRequests(errStopping) }).Stop()
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*grace)
	defer cancel()
	return srv.Shutdown(patience)
}

// debug serves a page about the locks of this process. It has an address of its own, because the page
// shows the paths of locks, the hosts of other processes and the ids of requests, and asks for no
// password. It begins before the first lock, or the page would not show that lock.
func debug(m *session.Manager, address string) (*http.Server, error) {
	mux := http.NewServeMux()
	mux.Handle("/debug/locks", lockz.Handler(m))
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("the page for operators", "err", err)
		}
	}()
	slog.Info("a page for operators", "url", "http://"+l.Addr().String()+"/debug/locks")
	return srv, nil
}
