// Command load measures very many holders and waiters at once: 2,000 locks held by one manager,
// 10,000 goroutines that wait for 100 locks, and 50 managers on one server. It also shows what
// happens at the limit of nodes. It fails if anything is left afterwards, or if a lock is held
// twice. With -fleet it measures instead what 1,000 idle holders cost three servers.
//
//	go run ./load -write
//	go run ./load -fleet -write
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/report"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

const page = "../docs/measured/load.md"

// sessionTimeout is long because heartbeats stand behind thousands of other requests, and every
// waiter looks again once in a timeout.
const sessionTimeout = time.Minute

func main() {
	scale := flag.Int("scale", 100, "how much of it, in percent")
	isFleet := flag.Bool("fleet", false, "measure a fleet of idle holders, and nothing else")
	write := flag.Bool("write", false, "write the tables into "+page+"; run from bench/")
	patience := flag.Duration("patience", 10*time.Minute, "how long it may take as a whole")
	flag.Parse()
	if err := run(*scale, *isFleet, *write, *patience); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run(scale int, isFleet, write bool, patience time.Duration) error {
	if scale < 1 || scale > 100 || flag.NArg() > 0 {
		return fmt.Errorf("want a -scale from 1 to 100, and nothing else: %d %q", scale, flag.Args())
	}
	if write {
		if _, err := os.Stat(page); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	of := func(n int) int { return max(1, n*scale/100) }
	section, measure := "load", oneServer
	if isFleet {
		section, measure = "fleet", threeServers
	}
	text, err := measure(ctx, of)
	if err != nil || !write {
		return err
	}
	return report.Section(page, section, text)
}

// oneServer runs what needs one server, and returns the tables.
func oneServer(ctx context.Context, of func(int) int) (_ string, err error) {
	ensemble, err := zktest.NewReal(zktest.ContainerCheck(time.Second))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, ensemble.Close()) }()
	var text strings.Builder
	fmt.Fprintf(&text, "`go run ./load`: %s, one server, in a process of its own on the same %d processors.\n",
		runtime.Version(), runtime.NumCPU())
	for _, scenario := range []func(context.Context, *zktest.Ensemble, func(int) int) (table, error){
		held, waiters, managers, limit,
	} {
		t, err := scenario(ctx, ensemble, of)
		if err != nil {
			return "", err
		}
		fmt.Println(t)
		text.WriteString("\n" + t.String())
	}
	return text.String(), nil
}

// connect makes managers.
func connect(ctx context.Context, e *zktest.Ensemble, server, n int, opts ...session.Option) (_ []*session.Manager, err error) {
	var ms []*session.Manager
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll(ms))
		}
	}()
	for range n {
		m, err := session.Connect(ctx, e.Addr(server), append([]session.Option{
			session.WithTimeout(sessionTimeout), session.WithLogger(slog.New(slog.DiscardHandler)),
		}, opts...)...)
		if err != nil {
			return nil, err
		}
		ms = append(ms, m)
		s, err := m.Session(ctx)
		if err == nil {
			_, err = s.Exists(ctx, "/") // when that is answered all goroutines of a manager run
		}
		if err != nil {
			return nil, err
		}
	}
	return ms, nil
}

func closeAll(ms []*session.Manager) error {
	var errs []error
	for _, m := range ms {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

// table is the result of one scenario.
type table struct {
	title string
	rows  [][2]string
}

func (t *table) row(name, format string, args ...any) {
	t.rows = append(t.rows, [2]string{name, fmt.Sprintf(format, args...)})
}

// String returns the table in Markdown.
func (t table) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | |\n|---|---:|\n", t.title)
	for _, r := range t.rows {
		fmt.Fprintf(&b, "| %s | %s |\n", r[0], r[1])
	}
	return b.String()
}
