package ensemble

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/internal/wire"
)

// Dial connects to one address, as the flags say.
type Dial func(ctx context.Context) (net.Conn, error)

// longestAnswer bounds what is read from a server.
const longestAnswer = 64 << 10

// word sends a four-letter word and returns the answer. It returns when the server has closed the
// connection, or ctx has ended.
func word(ctx context.Context, dial Dial, w string) (string, error) {
	c, err := dial(ctx)
	if err != nil {
		return "", err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if _, err := io.WriteString(c, w); err != nil {
		return "", err
	}
	var b bytes.Buffer
	_, err = io.Copy(&b, io.LimitReader(c, longestAnswer))
	if b.Len() > 0 {
		err = nil // a server may close a connection roughly
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
	out := wire.Visit{Hello: wire.Hello{TimeoutMillis: 1}}.Run(c)
	if !out.Greeted {
		return 0
	}
	return out.Greeting.Timeout()
}

// parseConfig counts the servers in the data of /zookeeper/config.
func parseConfig(data string) (voters, observers int) {
	for line := range strings.Lines(data) {
		if !strings.HasPrefix(line, "server.") {
			continue
		}
		if strings.Contains(line, ":observer") {
			observers++
		} else {
			voters++
		}
	}
	return voters, observers
}
