package dial

import (
	"net"
	"testing"
	"time"
)

// nothingAtStake is the Remaining of a manager without a session.
func nothingAtStake() time.Duration { return 0 }

// TestDial connects to a server of the system.
func TestDial(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	servers, _, err := Parse(l.Addr().String() + "/locks")
	if err != nil {
		t.Fatal(err)
	}
	d := New(Config{Servers: servers, Timeout: time.Second})
	defer d.Close(t.Context())
	c, to, err := d.Dial(t.Context(), nothingAtStake)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if to.Addr != l.Addr().String() || to.Name() != to.Addr {
		t.Errorf("connected to %+v", to)
	}
}
