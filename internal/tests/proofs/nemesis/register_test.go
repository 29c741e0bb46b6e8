//go:build linux

package nemesis

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// register is the value that a lock protects, outside of ZooKeeper. It refuses tokens lower than one
// that it has seen. Workers reach it by TCP, a line a request:
//
//	read <seat>                    under the lock, and so a sign of being served
//	write <seat> <token> <value>
//	long <seat>                    asks, under the lock, whether to keep it for long
//	rest <seat>                    the contender has come to rest
//	called <seat>                  asks whether it is to take the lock alone
//	done <seat>                    it has
//	settle <seat>                  waits until every server has what was written before
//
// A seat is one of a worker's contenders for the lock: worker × hands + hand. Each request is
// answered by "ok" or "no", the token and the value that are there afterwards.
type register struct {
	listener net.Listener
	running  sync.WaitGroup
	hands    int
	entered  chan<- int  // tells a listener which worker will keep the lock for a while
	settle   func() bool // waits until all servers have what one of them has

	mu     sync.Mutex // guards what follows
	closed bool
	conns  map[net.Conn]struct{}
	token  int64
	value  int64
	attack bool    // so keep the lock for long
	last   int     // who was seen under the lock last
	served []int64 // when each seat was, last
	rested []bool
	called int              // the seat that is to take the lock alone; -1: none
	writes map[int64]access // by value, which is never used twice
	stale  int
}

// access is a write as the register has seen it.
type access struct {
	at           int64
	worker       int
	token, value int64
	stale        bool
}

func newRegister(hands int, entered chan<- int, settle func() bool) (*register, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &register{
		listener: l, hands: hands, entered: entered, settle: settle,
		conns: make(map[net.Conn]struct{}), writes: make(map[int64]access),
		served: make([]int64, workers*hands), rested: make([]bool, workers*hands), called: -1,
	}
	r.running.Go(r.accept)
	return r, nil
}

func (r *register) addr() string { return r.listener.Addr().String() }

func (r *register) close() error {
	r.mu.Lock()
	r.closed = true
	for conn := range r.conns {
		_ = conn.Close()
	}
	r.mu.Unlock()
	err := r.listener.Close()
	r.running.Wait()
	return err
}

func (r *register) accept() {
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		if r.closed {
			_ = conn.Close()
		} else {
			r.conns[conn] = struct{}{}
			r.running.Go(func() { r.serve(conn) })
		}
		r.mu.Unlock()
	}
}

func (r *register) serve(conn net.Conn) {
	defer func() {
		_ = conn.Close()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.conns, conn)
	}()
	for in := bufio.NewScanner(conn); in.Scan(); {
		if _, err := fmt.Fprintln(conn, r.answer(in.Text())); err != nil {
			return
		}
	}
}

func (r *register) answer(request string) string {
	var what string
	var seat int
	var token, value int64
	n, _ := fmt.Sscan(request, &what, &seat, &token, &value)
	settled := what == "settle" && r.settle()
	r.mu.Lock()
	defer r.mu.Unlock()
	said := "ok"
	switch {
	case n < 2 || seat < 0 || seat >= len(r.served) || (n == 4) != (what == "write"):
		return "bad 0 0"
	case what == "settle":
		if !settled {
			said = "no"
		}
	case what == "rest":
		r.rested[seat] = true
	case what == "called":
		if r.called != seat {
			said = "no"
		}
	case what == "done":
		r.called = -1
	case what == "read":
		r.last, r.served[seat] = seat/r.hands, now()
	case what == "long" && r.attack:
		select {
		case r.entered <- seat / r.hands:
		default:
		}
	case what == "long":
		said = "no"
	case what == "write":
		if r.write(access{now(), seat / r.hands, token, value, token < r.token}) {
			said = "no"
		}
	default:
		return "bad 0 0"
	}
	return fmt.Sprint(said, " ", r.token, " ", r.value)
}

func (r *register) write(a access) (stale bool) {
	r.writes[a.value] = a
	if a.stale {
		r.stale++
		return true
	}
	r.token, r.value = a.token, a.value
	return false
}

// latest returns the worker that was seen under the lock last.
func (r *register) latest() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// setAttack sets whether the lock is to be kept for long, now and then.
func (r *register) setAttack(attack bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attack = attack
}

// servedSince returns when the last seat was served since a time, or false if a seat has not been
// served since.
func (r *register) servedSince(from int64) (last int64, all bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last = from
	for _, at := range r.served {
		if at <= from {
			return 0, false
		}
		last = max(last, at)
	}
	return last, true
}

// waiting returns the workers with a seat that was under the lock last at a time or before.
func (r *register) waiting(until int64) (late [workers]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for seat, at := range r.served {
		late[seat/r.hands] = late[seat/r.hands] || at <= until
	}
	return late
}

// restless returns how many seats have not come to rest.
func (r *register) restless() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rests := range r.rested {
		if !rests {
			n++
		}
	}
	return n
}

// registerClient is a worker's end. It is not safe for concurrent use.
type registerClient struct {
	addr string
	conn net.Conn
	in   *bufio.Reader
}

type answer struct {
	no           bool
	token, value int64
}

// ask sends a request and waits for the answer. After an error it is not known whether the
// register has had it.
func (c *registerClient) ask(format string, args ...any) (answer, error) {
	if c.conn == nil {
		conn, err := new(net.Dialer).DialContext(context.Background(), "tcp", c.addr)
		if err != nil {
			return answer{}, err
		}
		c.conn, c.in = conn, bufio.NewReader(conn)
	}
	a, err := c.exchange(fmt.Sprintf(format, args...))
	if err != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
	return a, err
}

func (c *registerClient) exchange(request string) (answer, error) {
	_ = c.conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := fmt.Fprintln(c.conn, request); err != nil {
		return answer{}, err
	}
	line, err := c.in.ReadString('\n')
	if err != nil {
		return answer{}, err
	}
	var said string
	var a answer
	if _, err := fmt.Sscan(line, &said, &a.token, &a.value); err != nil {
		return a, err
	}
	a.no = said == "no"
	if said != "ok" && !a.no {
		return a, fmt.Errorf("the register says %q to %q", line, request)
	}
	return a, nil
}

// valueOf returns the value that a turn writes. No two are the same.
func valueOf(worker, life, turn int) int64 {
	return int64(worker+1)<<48 | int64(life)<<32 | int64(turn)
}
