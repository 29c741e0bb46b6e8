package main

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// relay passes TCP on and counts the bytes, with a delay each way if one is set. It stands
// where zktest.Proxy cannot: before etcd, and where bytes are counted.
type relay struct {
	listener net.Listener
	target   string
	delay    time.Duration
	bytes    atomic.Int64 // both ways
	running  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  []net.Conn
}

func startRelay(target string, delay time.Duration) (*relay, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{listener: l, target: target, delay: delay}
	r.running.Go(r.accept)
	return r, nil
}

func (r *relay) Addr() string { return r.listener.Addr().String() }

func (r *relay) Close() error {
	err := r.listener.Close()
	r.mu.Lock()
	r.closed = true
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.running.Wait()
	return err
}

// accept ends with the listener.
func (r *relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", r.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		r.mu.Lock()
		if r.closed {
			_, _ = client.Close(), server.Close()
		}
		r.conns = append(r.conns, client, server)
		r.mu.Unlock()
		r.pass(client, server)
		r.pass(server, client)
	}
}

// chunk is what one read has brought.
type chunk struct {
	data []byte
	due  time.Time
}

// pass copies one way; at the end of either side it closes both.
func (r *relay) pass(from, to net.Conn) {
	// As many as may be under way at once; past that the sender waits.
	chunks := make(chan chunk, 1024)
	r.running.Go(func() {
		defer close(chunks)
		buf := make([]byte, 64<<10)
		for {
			n, err := from.Read(buf)
			r.bytes.Add(int64(n))
			if n > 0 {
				chunks <- chunk{append([]byte(nil), buf[:n]...), time.Now().Add(r.delay)}
			}
			if err != nil {
				return
			}
		}
	})
	r.running.Go(func() {
		var failed error
		for c := range chunks {
			if failed == nil {
				pause(time.Until(c.due))
				_, failed = to.Write(c.data)
			}
			if failed != nil {
				_ = from.Close() // chunks ends, at last
			}
		}
		_, _ = from.Close(), to.Close()
	})
}
