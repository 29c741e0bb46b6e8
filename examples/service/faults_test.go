package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// TestFaults has three replicas on three real servers, under the load of 12 clients. It restarts one server after the
// other, and after each restart expires the session of a replica, whichever locks it holds. A client sends an order
// until it has a receipt. Each order is placed once and shipped once.
func TestFaults(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	const servers, clients, between = 3, 12, 50
	ensemble := zktest.StartReal(t, zktest.Servers(servers), zktest.TickTime(200*time.Millisecond))
	var proxies []*zktest.Proxy // to expire sessions
	var addrs []string
	for i := range servers {
		p := zktest.StartProxy(t, ensemble.Addr(i))
		proxies, addrs = append(proxies, p), append(addrs, p.Addr())
	}
	c := config{
		zk: strings.Join(addrs, ","), db: filepath.Join(t.TempDir(), "orders.db"),
		timeout: 4 * time.Second, shipEvery: 20 * time.Millisecond, reportEvery: 500 * time.Millisecond,
	}
	var all []*service
	var urls []string
	var ends []func() error
	for range replicas {
		s, end := begin(t, c, nil)
		all, urls, ends = append(all, s), append(urls, s.url), append(ends, end)
	}

	var mu sync.Mutex
	var receipts []receipt
	placed := func() int { mu.Lock(); defer mu.Unlock(); return len(receipts) }
	enough := make(chan struct{})
	var load errgroup.Group
	for i := range clients {
		load.Go(func() error {
			for n := 0; ; n++ {
				select {
				case <-enough:
					return nil
				default:
				}
				o := order{fmt.Sprintf("%d-%d", i, n), fmt.Sprint("customer ", (i+n)%customers), int64(i + n)}
				r, err := place(ctx, urls, i+n, o)
				if err != nil {
					return fmt.Errorf("order %s: %w", o.ID, err)
				}
				mu.Lock()
				receipts = append(receipts, r)
				mu.Unlock()
			}
		})
	}
	more := func(after string) {
		t.Helper()
		before := placed()
		zktest.Eventually(t, time.Minute, "orders after "+after, func() bool { return placed() >= before+between })
	}
	more("the start")
	for i := range servers {
		must(t, ensemble.Restart(ctx, i))
		more(fmt.Sprint("the restart of server ", i))
		expire(ctx, t, all[i%replicas], proxies)
		more("the end of a session")
	}
	close(enough)
	must(t, load.Wait())
	zktest.Eventually(t, time.Minute, "all orders to be shipped", func() bool {
		var open int
		must(t, all[0].QueryRowContext(ctx, `SELECT count(*) FROM orders WHERE id NOT IN (SELECT id FROM shipments)`).Scan(&open))
		return open == 0
	})
	for _, end := range ends {
		must(t, end())
	}
	db, err := openStore(ctx, c.db)
	must(t, err)
	defer db.Close()
	check(t, db, receipts)
}

// expire ends the session of a replica as a server does, and waits until the replica has another one.
func expire(ctx context.Context, t *testing.T, s *service, proxies []*zktest.Proxy) {
	t.Helper()
	before := testserver.Session(t, s.m)
	var errs []error
	for _, p := range proxies {
		if !slices.Contains(p.Sessions(), before.ID()) {
			continue // it never was on that server
		}
		err := p.Expire(ctx, before.ID())
		if errs = append(errs, err); err == nil {
			break
		}
	}
	if len(errs) == 0 || errs[len(errs)-1] != nil {
		t.Fatalf("the session does not expire: %v", errors.Join(errs...))
	}
	zktest.Eventually(t, testserver.Patience, "the end of a session", func() bool { return before.Err() != nil })
	if next := testserver.Session(t, s.m); next.ID() == before.ID() {
		t.Error("the session goes on")
	}
}

// check compares the database with the receipts.
func check(t *testing.T, db store, receipts []receipt) {
	t.Helper()
	type row struct {
		receipt
		customer string
		amount   int64
	}
	rows := query(t, db, `SELECT id, number, total, token, customer, amount FROM orders ORDER BY customer, number`,
		func(r *row) []any { return []any{&r.ID, &r.Number, &r.Total, &r.Token, &r.customer, &r.amount} })
	// Of each customer, the orders have the numbers 1, 2, 3 …, each total continues the one before it, and tokens grow.
	last := make(map[string]row)
	for _, r := range rows {
		before := last[r.customer]
		if r.Number != before.Number+1 || r.Total != before.Total+r.amount || r.Token < before.Token {
			t.Errorf("%+v follows %+v", r, before)
		}
		last[r.customer] = r
	}
	byID := func(a, b receipt) int { return cmp.Compare(a.ID, b.ID) }
	var inDB []receipt
	for _, r := range rows {
		inDB = append(inDB, r.receipt)
	}
	slices.SortFunc(inDB, byID)
	slices.SortFunc(receipts, byID)
	if !slices.Equal(inDB, receipts) {
		t.Errorf("%d orders and %d receipts, which differ:\n%+v\n%+v", len(inDB), len(receipts), inDB, receipts)
	}

	type shipment struct {
		id   string
		term int64
	}
	shipments := query(t, db, `SELECT id, term FROM shipments ORDER BY rowid`, func(s *shipment) []any { return []any{&s.id, &s.term} })
	if !slices.IsSortedFunc(shipments, func(a, b shipment) int { return cmp.Compare(a.term, b.term) }) {
		t.Error("a former leader has shipped")
	}
	terms := make(map[int64]bool)
	shipped := make(map[string]int)
	for _, s := range shipments {
		terms[s.term] = true
		shipped[s.id]++
	}
	for _, r := range receipts {
		if shipped[r.ID] != 1 {
			t.Errorf("order %s was shipped %d times", r.ID, shipped[r.ID])
		}
	}
	type report struct{ tick, orders, token int64 }
	reports := query(t, db, `SELECT tick, orders, token FROM reports ORDER BY tick`, func(r *report) []any { return []any{&r.tick, &r.orders, &r.token} })
	for i := 1; i < len(reports); i++ {
		if reports[i].orders < reports[i-1].orders || reports[i].token < reports[i-1].token {
			t.Errorf("report %+v after %+v", reports[i], reports[i-1])
		}
	}
	t.Logf("%d orders, shipped in %d terms, %d reports", len(rows), len(terms), len(reports))
	if len(terms) < 2 || len(reports) == 0 {
		t.Error("too few terms or reports")
	}
}

// query returns the rows of a query. columns returns where the columns of a row go.
func query[R any](t *testing.T, db store, text string, columns func(*R) []any) (all []R) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), text)
	must(t, err)
	defer rows.Close()
	for rows.Next() {
		var r R
		must(t, rows.Scan(columns(&r)...))
		all = append(all, r)
	}
	must(t, rows.Err())
	return all
}
