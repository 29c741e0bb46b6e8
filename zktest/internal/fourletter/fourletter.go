// Package fourletter asks ZooKeeper servers the administrative commands that are called four-letter words.
package fourletter

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
)

// Ask sends a word to the server at addr and returns the answer. It returns when the server has
// answered and closed the connection, or when ctx ends.
func Ask(ctx context.Context, addr, word string) (string, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if _, err := io.WriteString(conn, word); err != nil {
		return "", cmp.Or(context.Cause(ctx), err)
	}
	text, err := io.ReadAll(conn)
	if err != nil {
		return "", cmp.Or(context.Cause(ctx), err)
	}
	return string(text), nil
}

// Mode asks the server at addr for its role: "standalone", "leader", "follower" or "observer".
// It is an error if the server does not serve clients.
func Mode(ctx context.Context, addr string) (string, error) {
	text, err := Ask(ctx, addr, "srvr")
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

// Metrics parses the answer to the word mntr, which has a name, a tab and a value on each line.
func Metrics(text string) map[string]string {
	metrics := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			metrics[name] = value
		}
	}
	return metrics
}
