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

// register is what the lock protects: one value, outside of ZooKeeper, with a guard that
// refuses lower tokens than it has seen. Workers reach it by TCP, a line a request:
//
//	read <worker>                    under the lock, and so a sign of being served
//	write <worker> <token> <value>
//	long <worker>                    asks, under the lock, whether to keep it for long
//	rest <worker>                    it is told that the worker has come to rest
//
// Each is answered by "ok" or "no", the token and the value that are there afterwards.
type register struct {
	listener net.Listener
	running  sync.WaitGroup
	entered  chan int // tells whoever listens who has the lock and will keep it for a while

	mu     sync.Mutex // guards what follows
	closed bool
	conns  map[net.Conn]struct{}
	token  int64
	value  int64
	attack bool           // so keep the lock for long
	last   int            // who was seen under the lock last
	served [workers]int64 // when each was, last
	rested [workers]bool
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

func newRegister() (*register, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &register{listener: l, entered: make(chan int), conns: make(map[net.Conn]struct{}), writes: make(map[int64]access)}
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
	var worker int
	var token, value int64
	n, _ := fmt.Sscan(request, &what, &worker, &token, &value)
	r.mu.Lock()
	defer r.mu.Unlock()
	said := "ok"
	switch {
	case n < 2 || worker < 0 || worker >= workers || (n == 4) != (what == "write"):
		return "bad 0 0"
	case what == "rest":
		r.rested[worker] = true
	case what == "read":
		r.last, r.served[worker] = worker, now()
	case what == "long" && r.attack:
		select {
		case r.entered <- worker:
		default:
		}
	case what == "long":
		said = "no"
	case what == "write":
		if r.write(access{now(), worker, token, value, token < r.token}) {
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

// holder returns who has the lock and keeps it for long. If nobody does for a time, it is who
// was seen under the lock last.
func (r *register) holder(within time.Duration) int {
	select {
	case worker := <-r.entered:
		return worker
	case <-time.After(within):
	}
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

// seen returns when a worker was under the lock last, and whether it rests.
func (r *register) seen(worker int) (served int64, rested bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.served[worker], r.rested[worker]
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
