package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// fleetTimeout is the default of sessions. How many writes they send depends on it.
const fleetTimeout = 10 * time.Second

// threeServers runs what needs three servers, which wait for their disks, and returns the table.
func threeServers(ctx context.Context, of func(int) int) (_ string, err error) {
	e, err := zktest.NewReal(zktest.Nodes(3), zktest.Property("forceSync", "yes"))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	t, err := fleet(ctx, e, of)
	if err != nil {
		return "", err
	}
	fmt.Println(t)
	return fmt.Sprintf("`go run ./load -fleet`: %s, three servers, in processes of their own on the same %d processors.\n\n%s",
		runtime.Version(), runtime.NumCPU(), t), nil
}

// fleet has 1,000 managers that each hold one lock and do nothing else. Their heartbeats are the whole load.
func fleet(ctx context.Context, e *zktest.Ensemble, of func(int) int) (t table, err error) {
	n := of(1000)
	t.title = fmt.Sprintf("%d managers, each holding a lock, with timeouts of %v", n, fleetTimeout)
	var ms []*session.Manager
	defer func() { err = errors.Join(closeAll(ms), err) }()
	for i := range e.Len() {
		share, err := connect(ctx, e, i, (n+i)/e.Len(), session.WithTimeout(fleetTimeout))
		if ms = append(ms, share...); err != nil {
			return t, err
		}
	}
	idle, err := measured(ctx, e, of)
	if err != nil {
		return t, err
	}
	leases, err := lockEach(ctx, ms)
	if err != nil {
		return t, err
	}
	held, err := measured(ctx, e, of)
	if err != nil {
		return t, err
	}
	for _, l := range leases {
		if err := l.Err(); err != nil {
			return t, err
		}
	}
	t.row("writes a second", "%.0f", held.writes)
	t.row("packets a second from clients, these writes among them", "%.0f", held.packets)
	t.row("packets a second before they took the locks", "%.0f", idle.packets)
	t.row("processor time of the three servers, of one processor", "%.0f%%", 100*held.busy)
	t.row("the same before they took the locks", "%.0f%%", 100*idle.busy)
	t.row("written to the disks of the three servers, in a second", "%.0f KiB", held.written/1024)
	return t, giveBack(ctx, leases)
}

// lockEach has each manager take a lock of its own.
func lockEach(ctx context.Context, ms []*session.Manager) ([]*queue.Lease, error) {
	leases := make([]*queue.Lease, len(ms))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i, m := range ms {
		g.Go(func() error {
			own, err := takeLocks(ctx, m, fmt.Sprintf("/load/fleet/%d", i), 1)
			leases[i] = own[0]
			return err
		})
	}
	return leases, g.Wait()
}

// work is what the servers do in a second.
type work struct {
	writes, packets float64
	busy, written   float64 // of one processor; bytes
}

// measured measures the servers for a minute, after 20 s in which what was before ends.
func measured(ctx context.Context, e *zktest.Ensemble, of func(int) int) (work, error) {
	var at [2]work
	var began time.Time
	for i, seconds := range []int{of(20), of(60)} {
		select {
		case <-ctx.Done():
			return work{}, ctx.Err()
		case <-time.After(time.Duration(seconds) * time.Second):
		}
		var err error
		if at[i], err = total(ctx, e); err != nil {
			return work{}, err
		}
		if i == 0 {
			began = time.Now()
		}
	}
	took := time.Since(began).Seconds()
	return work{
		(at[1].writes - at[0].writes) / took, (at[1].packets - at[0].packets) / took,
		(at[1].busy - at[0].busy) / took, (at[1].written - at[0].written) / took,
	}, nil
}

// total returns what the servers have done since they were started.
func total(ctx context.Context, e *zktest.Ensemble) (w work, err error) {
	for i := range e.Len() {
		text, err := e.Word(ctx, i, "srvr")
		if err != nil {
			return w, err
		}
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			switch name {
			case "Zxid": // its lower half counts the transactions of a leader
				zxid, err := strconv.ParseUint(value, 0, 64)
				if err != nil {
					return w, err
				}
				w.writes = max(w.writes, float64(zxid&(1<<32-1)))
			case "Received":
				n, err := strconv.Atoi(value)
				if err != nil {
					return w, err
				}
				w.packets += float64(n)
			}
		}
	}
	return w, w.ofProcesses()
}

// ofProcesses adds what all Java processes that this process has started have taken. Only Linux tells.
func (w *work) ofProcesses() error {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		stat, err := os.ReadFile(dir + "/stat")
		if err != nil {
			continue // it has ended
		}
		name, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		if !strings.HasSuffix(name, "(java") || len(fields) < 13 || fields[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		for _, f := range fields[11:13] { // in user and in system mode, in hundredths of a second
			n, err := strconv.Atoi(f)
			if err != nil {
				return err
			}
			w.busy += float64(n) / 100
		}
		io, err := os.ReadFile(dir + "/io")
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(io)) {
			if value, ok := strings.CutPrefix(strings.TrimSpace(line), "write_bytes: "); ok {
				n, err := strconv.Atoi(value)
				if err != nil {
					return err
				}
				w.written += float64(n)
			}
		}
	}
	return err
}
