package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

// TestKill has three processes and 200 clients, and kills one of the processes in the middle.
// Clients try again at another process until they have an apple. Each answer is one deduction.
// A lost reply can be one more.
func TestKill(t *testing.T) {
	const (
		customers = 200
		killAfter = 60
		before    = 1000
	)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	zk := testserver.Server(t).ConnectString()
	file := filepath.Join(t.TempDir(), "stock.db")
	db, err := openStock(ctx, file)
	must(t, err)
	defer db.Close()
	must(t, db.fill(ctx, "apple", before))

	exe := filepath.Join(t.TempDir(), "httpserver.exe")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", exe, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	var servers []*process
	for range processes {
		// The timeout is how long the others wait for the locks of the killed process.
		p, err := start(exe, "-listen", "127.0.0.1:0", "-zk", zk, "-db", file, "-timeout", "4s", "-log", "error")
		must(t, err)
		t.Cleanup(p.kill)
		servers = append(servers, p)
	}
	defer http.DefaultClient.CloseIdleConnections()

	var mu sync.Mutex
	var sold []receipt
	refused, unknown := 0, 0
	enough := make(chan struct{}) // closed after killAfter successes
	customer := func(i int) {
		for try := i; ctx.Err() == nil; try++ {
			r, err := buy(ctx, servers[try%processes].url, "apple")
			mu.Lock()
			switch {
			case err == nil:
				sold = append(sold, r)
				if len(sold) == killAfter {
					close(enough)
				}
			case errors.Is(err, errTryAgain), unsent(err):
				refused++ // and nothing was done
			default:
				unknown++
			}
			mu.Unlock()
			if err == nil {
				return
			}
		}
		t.Errorf("customer %d: %v", i, ctx.Err())
	}
	var wg sync.WaitGroup
	for i := range customers {
		wg.Go(func() { customer(i) })
	}
	select {
	case <-enough:
		servers[0].kill()
	case <-ctx.Done():
		t.Error("too few sold to kill anybody")
	}
	wg.Wait()

	n, err := db.left(ctx, "apple")
	must(t, err)
	deducted := before - n
	t.Logf("%d customers served, %d deducted, %d tries refused, %d without a reply", len(sold), deducted, refused, unknown)
	if len(sold) != customers {
		t.Errorf("%d of %d customers have an apple", len(sold), customers)
	}
	if deducted < len(sold) || deducted > len(sold)+unknown {
		t.Errorf("%d deducted for %d customers and %d lost replies", deducted, len(sold), unknown)
	}
	if refused+unknown == 0 {
		t.Error("the kill hit nobody")
	}
	if err := oneByOne(sold); err != nil {
		t.Error(err)
	}
	for _, p := range servers[1:] {
		if err := p.stop(); err != nil {
			t.Errorf("a server that was told to stop: %v", err)
		}
	}
	testserver.WaitChildren(t, "/stock/apple", 0)
}

// unsent reports whether a request failed before it was sent.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
