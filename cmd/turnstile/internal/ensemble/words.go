package ensemble

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/visit"
)

// Dial connects to one address, as the flags say.
type Dial func(ctx context.Context) (net.Conn, error)

// longestAnswer bounds what is read from a server.
const longestAnswer = 64 << 10

// errSilent says that a server has accepted a connection, and had not answered when the time to wait was over. A server that
// hangs looks like that, since the kernel accepts connections for it.
var errSilent = errors.New("it accepted the connection, and did not answer")

// word sends a four-letter word and returns the answer. It returns when the server has closed the
// connection. If ctx ends before anything has come, it fails with errSilent.
func word(ctx context.Context, dial Dial, w string) (string, error) {
	c, err := dial(ctx)
	if err != nil {
		return "", err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	var b bytes.Buffer
	if _, err = io.WriteString(c, w); err == nil {
		_, err = io.Copy(&b, io.LimitReader(c, longestAnswer))
	}
	switch {
	case b.Len() > 0:
		err = nil // a server may close a connection roughly
	case err != nil && ctx.Err() != nil:
		err = errSilent
	}
	return b.String(), err
}

// parseServing reads the answer to srvr. Servers answer otherwise if the word is not allowed, or if they do not
// serve clients.
func parseServing(text string) (version, role string, serving bool) {
	serving = !strings.Contains(text, "not currently serving requests")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if v, ok := strings.CutPrefix(line, "Zookeeper version: "); ok {
			version, _, _ = strings.Cut(v, ",")
			version, _, _ = strings.Cut(version, "-")
			version, _, _ = strings.Cut(version, "-")
		}
		if r, ok := strings.CutPrefix(line, "Mode: "); ok {
			role = r
		}
	}
	return version, role, serving
}

// shortest returns the shortest session timeout that a server grants, 0 if it does not say.
func shortest(ctx context.Context, dial Dial) time.Duration {
	c, err := dial(ctx)
	if err != nil {
		return 0
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	return visit.Visit{Hello: visit.Hello{Timeout: time.Millisecond}}.Run(c).Timeout
}
