package logbook_test

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/turnstile-go/turnstile/internal/logbook"
)

var server = logbook.Target{Addr: "10.0.0.1:2181", Host: "zk1"}

// The log of a session that is opened and closed.
func Example() {
	lines := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	log, queue := logbook.Queued(lines)
	terms := logbook.Terms{Timeout: 10 * time.Second}
	b := logbook.New(log, terms, func() []*logbook.Failure { return nil })
	b.Connected("0x1dc6acfac000000", server, terms)
	b.Closed("0x1dc6acfac000000")
	queue.Flush(time.Minute)
	// Output:
	// level=INFO msg="zookeeper session opened" session=0x1dc6acfac000000 server="zk1:2181 (10.0.0.1:2181)" timeout=10s
	// level=INFO msg="zookeeper session closed" session=0x1dc6acfac000000
}

func ExampleFailure() {
	fmt.Println(&logbook.Failure{Step: logbook.StepTLS, To: server, Err: io.EOF})
	// Output: TLS handshake with zk1:2181 (10.0.0.1:2181): the server hung up; is this its port for TLS?
}
