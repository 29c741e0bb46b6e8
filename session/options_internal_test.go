package session

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/go-zookeeper/zk"
)

func mustNotDial(t *testing.T) Option {
	return WithDialer(func(context.Context, string, string) (net.Conn, error) {
		t.Error("dialled")
		return nil, net.ErrClosed
	})
}

// Options that cannot work are refused before any I/O.
func TestConnectInvalid(t *testing.T) {
	type attempt struct {
		name, servers string
		opts          []Option
	}
	var attempts []attempt
	for _, s := range []string{"", "/a", "h:0", "h 1", "h/a/", "h,zk://h"} {
		attempts = append(attempts, attempt{fmt.Sprintf("servers %q", s), s, nil})
	}
	for name, o := range map[string]Option{
		"nil":                nil,
		"timeout 0":          WithTimeout(0),
		"timeout -1":         WithTimeout(-time.Second),
		"timeout below a ms": WithTimeout(time.Millisecond - 1),
		"timeout too long":   WithTimeout(math.MaxInt32*time.Millisecond + 1),
		"margin 0":           WithMargin(0),
		"margin -1":          WithMargin(-1),
		"margin the timeout": WithMargin(10 * time.Second),
		"connect timeout 0":  WithConnectTimeout(0),
		"connect timeout -1": WithConnectTimeout(-1),
		"no retry":           WithRetry(nil),
		"a retry of nothing": WithRetry(func() backoff.BackOff { return nil }),
		"no auth scheme":     WithAuth("", []byte("x")),
		"nil resolver":       WithResolver(nil),
		"no mechanism":       WithSASL(nil),
		"no SASL user":       WithSASL(DigestMD5("", "x")),
		"empty ACL":          WithACL(),
		"no TLS config":      WithTLS(nil),
		"no dialer":          WithDialer(nil),
		"no logger":          WithLogger(nil),
		"no log handler":     WithLogger(&slog.Logger{}),
		"max nodes 0":        WithMaxNodes(0),
		"max nodes -1":       WithMaxNodes(-1),
		"empty name":         WithName(""),
		"name with a slash":  WithName("a/b"),
		"unprintable name":   WithName("a\n"),
		"name of no text":    WithName("a\xff"),
	} {
		attempts = append(attempts, attempt{name, "127.0.0.1:1", []Option{o}})
	}
	for _, a := range attempts {
		t.Run(a.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second) // for when it is not refused
			defer cancel()
			m, err := Connect(ctx, a.servers, append([]Option{mustNotDial(t)}, a.opts...)...)
			if !errors.Is(err, ErrInvalid) || m != nil {
				t.Errorf("got %v, %v, want ErrInvalid", m, err)
			}
		})
	}
}

// The error names everything that is wrong.
func TestConnectInvalidJoined(t *testing.T) {
	_, err := newConfig("h:0", []Option{WithTimeout(0), nil})
	if err == nil {
		t.Fatal("accepted")
	}
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) || len(joined.Unwrap()) != 3 {
		t.Errorf("got %v, want three errors", err)
	}
}

func TestConnectCancelledBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Connect(ctx, "127.0.0.1:1", mustNotDial(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestDefaults(t *testing.T) {
	c, err := newConfig("h", nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Timeout != 10*time.Second || c.ConnectTimeout != c.Timeout || c.MaxNodes != 8192 || c.LossOnSuspend {
		t.Errorf("defaults: %+v", c)
	}
	c, err = newConfig("h", []Option{WithTimeout(3 * time.Second), WithMargin(time.Second)})
	if err != nil || c.ConnectTimeout != 3*time.Second || c.Margin != time.Second {
		t.Errorf("got %+v, %v", c, err)
	}
	if c, err = newConfig("h", []Option{WithTimeout(time.Minute)}); err != nil || c.ConnectTimeout != 15*time.Second {
		t.Errorf("connect timeout %v for a minute", c.ConnectTimeout)
	}
}

// A retry function that returns nil is refused. If it does so later, the default is used.
func TestRetryThatReturnsNil(t *testing.T) {
	calls := 0
	c, err := newConfig("h", []Option{WithRetry(func() backoff.BackOff {
		if calls++; calls == 1 {
			return &backoff.ZeroBackOff{}
		}
		return nil
	})})
	if err != nil {
		t.Fatal(err)
	}
	if d := c.Retry().NextBackOff(); d < 0 || d > 50*time.Millisecond {
		t.Errorf("a first wait of %v", d)
	}
}

// Changes of the caller to its slices and its TLS config after the call have no effect.
func TestOptionsAreCopies(t *testing.T) {
	secret := []byte("user:password")
	acl := zk.DigestACL(zk.PermAll, "user", "password")
	cfg := &tls.Config{ServerName: "a"}
	c, err := newConfig("h", []Option{WithAuth("digest", secret), WithACL(acl...), WithTLS(cfg)})
	if err != nil {
		t.Fatal(err)
	}
	want := acl[0].ID
	secret[0], acl[0].ID, cfg.ServerName = 'X', "X", "b"
	if string(c.Auths[0].Credential) != "user:password" || c.NodeACL()[0].ID != want || c.TLS.ServerName != "a" {
		t.Errorf("changed behind our back: %q %q %q", c.Auths[0].Credential, c.NodeACL()[0].ID, c.TLS.ServerName)
	}
}

// The default waits: full jitter, with a bound that doubles from 50 ms to half the timeout or 15
// s, without end.
func TestDefaultRetry(t *testing.T) {
	for timeout, most := range map[time.Duration]time.Duration{
		2 * time.Second: time.Second,
		time.Minute:     15 * time.Second,
	} {
		c, err := newConfig("h", []Option{WithTimeout(timeout)})
		if err != nil {
			t.Fatal(err)
		}
		b := c.Retry()
		bound, longest := 50*time.Millisecond, time.Duration(0)
		for i := range 200 {
			d := b.NextBackOff()
			if d == backoff.Stop || d < 0 || d > bound+time.Millisecond {
				t.Fatalf("timeout %v, wait %d: %v, want at most %v", timeout, i, d, bound)
			}
			longest = max(longest, d)
			bound = min(2*bound, most)
		}
		if longest < most/2 {
			t.Errorf("timeout %v: the longest of 200 waits is %v, want about %v", timeout, longest, most)
		}
	}
}
