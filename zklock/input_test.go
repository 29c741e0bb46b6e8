package zklock_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// New returns an error for bad input, before any I/O: the manager of this test cannot do any.
func TestNewInvalid(t *testing.T) {
	tests := []struct {
		name string
		path string
		opts []zklock.Option
		ok   bool
	}{
		{name: "empty path", path: ""},
		{name: "no leading slash", path: "locks/a"},
		{name: "root", path: "/"},
		{name: "empty element", path: "/locks//a"},
		{name: "two leading slashes", path: "//locks"},
		{name: "trailing slash", path: "/locks/"},
		{name: "dot", path: "/locks/./a"},
		{name: "dot dot", path: "/locks/../a"},
		{name: "dot dot at the end", path: "/locks/.."},
		{name: "NUL", path: "/locks/a\x00b"},
		{name: "control character", path: "/locks/a\nb"},
		{name: "not UTF-8", path: "/locks/\xff"},
		{name: "ZooKeeper's own", path: "/zookeeper"},
		{name: "below ZooKeeper's own", path: "/zookeeper/quota/a"},
		{name: "contender of Curator", path: "/locks/a/_c_4f1d-lock-0000000001"},
		{name: "contender of kazoo", path: "/locks/a/4f1d__lock__0000000001"},
		{name: "below a contender", path: "/locks/lease-0000000001/a"},
		{name: "very long", path: "/" + strings.Repeat("a", 1<<20)},
		{name: "nil option", path: "/locks/a", opts: []zklock.Option{nil}},
		{name: "empty name", path: "/locks/a", opts: []zklock.Option{zklock.WithName("")}},
		{name: "name that is no text", path: "/locks/a", opts: []zklock.Option{zklock.WithName("\xff")}},
		{name: "long name", path: "/locks/a", opts: []zklock.Option{zklock.WithName(strings.Repeat("a", 201))}},
		{name: "no local hand-overs", path: "/locks/a", opts: []zklock.Option{zklock.WithLocalHandover(0)}},
		{name: "negative local hand-overs", path: "/locks/a", opts: []zklock.Option{zklock.WithLocalHandover(-1)}},
		{name: "bad option after a good one", path: "/locks/a", opts: []zklock.Option{zklock.WithName("a"), nil}},

		{name: "plain", path: "/locks/a", ok: true},
		{name: "zookeeper below another", path: "/locks/zookeeper", ok: true},
		{name: "begins like ZooKeeper's own", path: "/zookeepers", ok: true},
		{name: "a number", path: "/locks/0000000001", ok: true},
		{name: "dots within a name", path: "/locks/..a/b..", ok: true},
		{name: "spaces and letters beyond ASCII", path: "/løcks/a b", ok: true},
		{name: "local hand-over", path: "/locks/a", opts: []zklock.Option{zklock.WithLocalHandover(1)}, ok: true},
		{name: "name", path: "/locks/a", opts: []zklock.Option{zklock.WithName(strings.Repeat("a", 200))}, ok: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mx, err := zklock.New(new(session.Manager), tt.path, tt.opts...)
			if tt.ok {
				must(t, err)
				return
			}
			wantErr(t, "New", err, session.ErrInvalid)
			if mx != nil {
				t.Error("a Mutex beside an error")
			}
		})
	}
	_, err := zklock.New(nil, "/locks/a")
	wantErr(t, "New of a nil manager", err, session.ErrInvalid)
}

// Connect returns an error for bad input, before it dials.
func TestConnectInvalid(t *testing.T) {
	tests := []struct {
		name    string
		servers string
		opts    []session.Option
	}{
		{"no servers", "", nil},
		{"blank", "  ", nil},
		{"a chroot alone", "/chroot", nil},
		{"an empty server", "h1:2181,,h2:2181", nil},
		{"a port that is no number", "h1:zookeeper", nil},
		{"port 0", "h1:0", nil},
		{"a port too high", "h1:65536", nil},
		{"a negative port", "h1:-1", nil},
		{"no host", ":2181", nil},
		{"a bad chroot", "h1:2181/a//b", nil},
		{"negative timeout", "h1", []session.Option{session.WithTimeout(-time.Second)}},
		{"no timeout", "h1", []session.Option{session.WithTimeout(0)}},
		{"negative margin", "h1", []session.Option{session.WithMargin(-time.Second)}},
		{"margin as long as the timeout", "h1", []session.Option{session.WithTimeout(time.Second), session.WithMargin(time.Second)}},
		{"negative backoff", "h1", []session.Option{session.WithBackoff(-1, time.Second)}},
		{"negative number of nodes", "h1", []session.Option{session.WithNodeLimits(-1, 1<<20)}},
		{"nil option", "h1", []session.Option{nil}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dial := session.WithDialer(func(_ context.Context, _, addr string) (net.Conn, error) {
				t.Errorf("dialled %s", addr)
				return nil, errors.New("no network")
			})
			m, err := session.Connect(patient(t), tt.servers, append(tt.opts, dial)...)
			wantErr(t, "Connect", err, session.ErrInvalid)
			if m != nil {
				t.Error("a manager beside an error")
			}
		})
	}
}
