package zktest

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
)

// fourLetterWord sends one of ZooKeeper's administrative commands and returns
// the answer. It returns when the server has answered and closed the
// connection, or when ctx ends.
func fourLetterWord(ctx context.Context, addr, word string) (string, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if _, err := io.WriteString(conn, word); err != nil {
		return "", ctxError(ctx, err)
	}
	text, err := io.ReadAll(conn)
	if err != nil {
		return "", ctxError(ctx, err)
	}
	return string(text), nil
}

// ctxError returns why ctx ended, if it did, instead of the error that this
// led to.
func ctxError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// mode asks a server what it is: standalone, leader, follower, observer. It
// returns an error from a server that does not serve clients.
func mode(ctx context.Context, addr string) (string, error) {
	text, err := fourLetterWord(ctx, addr, "srvr")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(text) {
		if m, ok := strings.CutPrefix(strings.TrimSpace(line), "Mode: "); ok {
			return m, nil
		}
	}
	return "", fmt.Errorf("server says: %s", strings.TrimSpace(text))
}

// parseMetrics reads the answer to mntr: a name, a tab and a value a line.
func parseMetrics(text string) map[string]string {
	metrics := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			metrics[name] = value
		}
	}
	return metrics
}
