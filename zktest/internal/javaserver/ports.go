package javaserver

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are the ports of one server. The options decide which of them it uses.
type Ports struct {
	Client, Quorum, Election, Secure int
}

// A server keeps its ports while it is down. So the ports come from below the range from which
// systems pick the local port of an outgoing connection (32768 and up on Linux). If a stopped
// server's port were in that range, the system could give it to a client that dials this
// server. The client would then keep the server from starting or, worse, connect to itself.
const (
	firstPort = 10240
	lastPort  = 32767
)

// FreePorts returns ports for n servers that are free at the moment. Another process can take
// one before the server does, so callers must be ready to ask again.
func FreePorts(n int) ([]Ports, error) {
	var open []net.Listener
	defer func() {
		for _, l := range open {
			_ = l.Close()
		}
	}()
	// All listeners stay open until the last port is found, so that no port comes up twice.
	next := func() (int, error) {
		l, err := Listen()
		if err != nil {
			return 0, fmt.Errorf("zktest: finding a free port: %w", err)
		}
		open = append(open, l)
		return l.Addr().(*net.TCPAddr).Port, nil
	}
	ports := make([]Ports, n)
	for i := range ports {
		for _, p := range []*int{&ports[i].Client, &ports[i].Quorum, &ports[i].Election, &ports[i].Secure} {
			var err error
			if *p, err = next(); err != nil {
				return nil, err
			}
		}
	}
	return ports, nil
}

// Listen listens on a free port of 127.0.0.1, preferably in the range of [FreePorts].
func Listen() (net.Listener, error) {
	for range 50 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		if l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return l, nil
		}
	}
	return net.Listen("tcp4", "127.0.0.1:0")
}
