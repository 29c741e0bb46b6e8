// Service is a whole service on these locks. Several replicas take orders over HTTP, with a lock for each customer. One
// replica, the leader of an election, ships what was ordered. At each tick of a schedule one replica makes a report. All
// of them write to one SQLite file, which refuses the writes of former holders (package fence).
//
//	POST /orders?id=o-17&customer=ann&amount=5    200 with a receipt; again with the same id: the same receipt
//	503                                           not known to be placed: send it again, to any replica
//
// The address for operators has /livez, /readyz, /metrics for Prometheus and /debug/locks (package lockz). Spans go to a
// collector if OTEL_EXPORTER_OTLP_ENDPOINT names one.
//
//	go run .                                              # a demonstration: a server in the process, three replicas
//	go run . -listen :8080 -operators localhost:6060      # serve, with a server in the process
//	go run . -listen :8080 -zk host:2181 -db orders.db    # one of several replicas
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
	"path/filepath"
	"syscall"
	"time"

	"github.com/turnstile-go/turnstile/zktest"
)

type config struct {
	zk          string
	db          string
	listen      string
	operators   string
	timeout     time.Duration // of the session
	drain       time.Duration
	shipEvery   time.Duration // between two looks of the leader
	reportEvery time.Duration // between two reports
}

func main() {
	c := config{shipEvery: 100 * time.Millisecond}
	var level slog.LevelVar
	flag.StringVar(&c.zk, "zk", "", "connect string of a ZooKeeper, `host:port`; by default a server in this process")
	flag.StringVar(&c.db, "db", "", "the SQLite `file`; by default one that goes away at the end")
	flag.StringVar(&c.listen, "listen", "", "serve orders at this `address`; by default run a demonstration and end")
	flag.StringVar(&c.operators, "operators", "localhost:0", "serve health, metrics and locks at this `address`")
	flag.DurationVar(&c.timeout, "timeout", 10*time.Second, "ZooKeeper session timeout: how long others wait for a process that died")
	flag.DurationVar(&c.drain, "drain", 0, "go on serving for so long after SIGTERM, until load balancers have seen /readyz")
	flag.DurationVar(&c.reportEvery, "report", time.Minute, "make a report so often")
	flag.TextVar(&level, "log", &level, "lowest `level` to log: debug, info, warn, error")
	flag.Parse()
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: &level})))

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, os.Stdout, c); err != nil {
		slog.Error("service", "err", err)
		os.Exit(1)
	}
}

// run fills in what was not given, and serves or demonstrates.
func run(ctx context.Context, out io.Writer, c config) error {
	if c.zk == "" {
		if c.db != "" { // the database has seen higher tokens than those of a new server
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
		dir, err := os.MkdirTemp("", "service-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		c.db = filepath.Join(dir, "orders.db")
	}
	if c.listen == "" {
		return demo(ctx, out, c)
	}
	s, err := open(ctx, c)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "orders at %s, operators at %s\n", s.url, s.operators)
	return s.run(ctx)
}
