//go:build linux

package nemesis

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// desk is what workers ask and tell while they work, by TCP, a line a request:
//
//	served <seat>                  the contender is under its lock
//	long <seat>                    asks, under the lock, whether to keep it for long
//	rest <seat>                    the contender has come to rest
//	called <seat>                  asks whether it is to take the lock alone
//	done <seat>                    it has
//	settle <seat>                  waits until every server has what was written before
//	count <worker> <life> <goroutines> <files> <heap>
//
// A seat is a contender of one worker for one lock. Each request is answered by "ok" or "no".
type desk struct {
	listener net.Listener
	running  sync.WaitGroup
	entered  chan int              // tells a listener which worker will keep a lock for a while
	settle   func(target int) bool // waits until all servers have what one of them has of the lock

	mu     sync.Mutex // guards what follows
	closed bool
	conns  map[net.Conn]struct{}
	attack bool // so keep locks for long
	called int  // the seat that is to take its lock alone; -1: none
	seats  []seat
	last   []int // of each target, the worker that was seen under the lock last
	counts map[lifeID]counts
}

type seat struct {
	target, worker int
	served         int64 // when it was, last
	rested         bool
}

// counts are what a process has in use.
type counts struct {
	goroutines, files int
	heap              int64
}

func newDesk(seats []seat, targets int, settle func(target int) bool) (*desk, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &desk{
		listener: l, entered: make(chan int), settle: settle, conns: make(map[net.Conn]struct{}), called: -1,
		seats: seats, last: make([]int, targets), counts: make(map[lifeID]counts),
	}
	d.running.Go(d.accept)
	return d, nil
}

func (d *desk) close() error {
	d.mu.Lock()
	d.closed = true
	for conn := range d.conns {
		_ = conn.Close()
	}
	d.mu.Unlock()
	err := d.listener.Close()
	d.running.Wait()
	return err
}

func (d *desk) accept() {
	for {
		conn, err := d.listener.Accept()
		if err != nil {
			return
		}
		d.mu.Lock()
		if d.closed {
			_ = conn.Close()
		} else {
			d.conns[conn] = struct{}{}
			d.running.Go(func() { d.serve(conn) })
		}
		d.mu.Unlock()
	}
}

func (d *desk) serve(conn net.Conn) {
	defer func() {
		_ = conn.Close()
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.conns, conn)
	}()
	for in := bufio.NewScanner(conn); in.Scan(); {
		if _, err := fmt.Fprintln(conn, d.answer(in.Text())); err != nil {
			return
		}
	}
}

func (d *desk) answer(request string) string {
	var what string
	var n int
	var args [4]int64 // of a count
	_, _ = fmt.Sscan(request, &what, &n, &args[0], &args[1], &args[2], &args[3])
	if n < 0 || n >= len(d.seats) {
		return "bad"
	}
	asked := d.seats[n].target
	isSettled := what == "settle" && d.settle(asked)
	d.mu.Lock()
	defer d.mu.Unlock()
	s, yes := &d.seats[n], true
	switch what {
	case "settle":
		yes = isSettled
	case "rest":
		s.rested = true
	case "called":
		yes = d.called == n
	case "done":
		d.called = -1
	case "served":
		d.last[asked], s.served = s.worker, now()
	case "long":
		if yes = d.attack; yes {
			select {
			case d.entered <- s.worker:
			default:
			}
		}
	case "count":
		d.counts[lifeID{n, int(args[0])}] = counts{int(args[1]), int(args[2]), args[3]}
	default:
		return "bad"
	}
	if yes {
		return "ok"
	}
	return "no"
}

// do calls f with the lock.
func (d *desk) do(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// servedSince returns, for each target, when the last of its seats was served since a time, or -1 if one has not been.
func (d *desk) servedSince(from int64) []int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := slices.Repeat([]int64{from}, len(d.last))
	for _, s := range d.seats {
		if s.served <= from {
			last[s.target] = -1
		} else if last[s.target] >= 0 {
			last[s.target] = max(last[s.target], s.served)
		}
	}
	return last
}

// seatsWhere returns the seats for which f is true.
func (d *desk) seatsWhere(f func(seat) bool) (found []seat) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.seats {
		if f(s) {
			found = append(found, s)
		}
	}
	return found
}

// restless counts the seats of each target that have not come to rest.
func (d *desk) restless() []int {
	n := make([]int, len(d.last))
	for _, s := range d.seatsWhere(func(s seat) bool { return !s.rested }) {
		n[s.target]++
	}
	return n
}

// deskClient is a worker's end. It is not safe for concurrent use.
type deskClient struct {
	addr string
	conn net.Conn
	in   *bufio.Reader
}

// ask sends a request and returns the answer. After an error it is not known whether the desk has had it.
func (c *deskClient) ask(format string, args ...any) (yes bool, err error) {
	if c.conn == nil {
		conn, err := new(net.Dialer).DialContext(context.Background(), "tcp", c.addr)
		if err != nil {
			return false, err
		}
		c.conn, c.in = conn, bufio.NewReader(conn)
	}
	request := fmt.Sprintf(format, args...)
	_ = c.conn.SetDeadline(time.Now().Add(time.Minute))
	line := ""
	if _, err = fmt.Fprintln(c.conn, request); err == nil {
		line, err = c.in.ReadString('\n')
	}
	if err != nil {
		_ = c.conn.Close()
		c.conn = nil
		return false, err
	}
	if line != "ok\n" && line != "no\n" {
		return false, fmt.Errorf("the desk says %q to %q", line, request)
	}
	return line == "ok\n", nil
}
