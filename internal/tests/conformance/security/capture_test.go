package security

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// capture has all that was logged, returned or passed to hooks.
type capture struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.Write(p)
}

// see takes a value as the usual ways of printing show it.
func (c *capture) see(what string, v any) {
	fmt.Fprintf(c, "%s: %v %+v %#v\n", what, v, v, v)
}

// has reports whether something has been captured.
func (c *capture) has(what string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Contains(c.text.Bytes(), []byte(what))
}

// logger logs everything, in both of slog's formats.
func (c *capture) logger() *slog.Logger {
	all := &slog.HandlerOptions{AddSource: true, Level: slog.LevelDebug - 10}
	return slog.New(double{slog.NewJSONHandler(c, all), slog.NewTextHandler(c, all)})
}

type double struct {
	slog.Handler
	second slog.Handler
}

func (d double) Handle(ctx context.Context, r slog.Record) error {
	_ = d.second.Handle(ctx, r)
	return d.Handler.Handle(ctx, r)
}

// search fails the test where a secret is found, in any form that printing gives to one.
func (c *capture) search(t *testing.T, name string, secret []byte) {
	t.Helper()
	c.mu.Lock()
	text := c.text.String()
	c.mu.Unlock()
	for form, s := range map[string]string{
		"plain":       string(secret),
		"quoted":      strings.Trim(fmt.Sprintf("%q", secret), `"`),
		"base64":      strings.TrimRight(base64.StdEncoding.EncodeToString(secret), "="),
		"URL base64":  strings.TrimRight(base64.URLEncoding.EncodeToString(secret), "="),
		"hexadecimal": hex.EncodeToString(secret),
		"HEX":         strings.ToUpper(hex.EncodeToString(secret)),
		"numbers":     strings.Trim(fmt.Sprint(secret), "[]"),
		"Go":          strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%#v", secret), "[]byte{"), "}"),
	} {
		if i := strings.Index(text, s); i >= 0 {
			t.Errorf("%s, %s: %.300q", name, form, text[max(0, i-100):])
		}
	}
}
