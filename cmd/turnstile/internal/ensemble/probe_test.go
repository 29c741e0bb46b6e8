package ensemble

import (
	"net"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

// Of a server that hangs, whose connections the kernel accepts, check says that, and not how it has ended its own.
func TestHungServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	// On a busy machine a short time can be over before there is a connection. Then it is another error.
	var got string
	for d := 20 * time.Millisecond; d < testserver.Patience; d *= 2 {
		p := &probe{target: Target{Name: l.Addr().String(), Address: l.Addr().String()}, plan: &Plan{Connect: d}}
		p.open(t.Context())
		if got = p.found.Error; got == "it accepted the connection, and did not answer within "+d.String() {
			return
		}
	}
	t.Error(got)
}
