package zktest

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// nodePorts are the ports of one server; which one is used depends on the options.
type nodePorts struct {
	client, quorum, election, secure int
}

// Servers keep their ports while they are down, so the ports come from below
// the range from which systems pick the local end of outgoing connections
// (32768 and up on Linux). From within it, a client that dials a stopped
// server can be given the server's own port: it then either keeps the server
// from starting again or, worse, connects to itself.
const (
	firstPort = 10240
	lastPort  = 32767
)

// freePorts finds ports for n servers that nobody listens on just now.
// Somebody may take one before the server does: be ready to ask again.
func freePorts(n int) ([]nodePorts, error) {
	var open []net.Listener
	defer func() {
		for _, l := range open {
			_ = l.Close()
		}
	}()
	// All are kept open until the last one is found, so that they differ.
	next := func() (int, error) {
		l, err := listenAnywhere()
		if err != nil {
			return 0, fmt.Errorf("zktest: finding a free port: %w", err)
		}
		open = append(open, l)
		return l.Addr().(*net.TCPAddr).Port, nil
	}
	ports := make([]nodePorts, n)
	for i := range ports {
		for _, p := range []*int{&ports[i].client, &ports[i].quorum, &ports[i].election, &ports[i].secure} {
			var err error
			if *p, err = next(); err != nil {
				return nil, err
			}
		}
	}
	return ports, nil
}

// listenAnywhere listens on some free port, preferably one below lastPort.
func listenAnywhere() (net.Listener, error) {
	for range 50 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		if l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return l, nil
		}
	}
	return net.Listen("tcp4", "127.0.0.1:0")
}
