package zklock_test

import (
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
		{name: "no time to keep", path: "/locks/a", opts: []zklock.Option{zklock.WithLazyRelease(0)}},
		{name: "negative time to keep", path: "/locks/a", opts: []zklock.Option{zklock.WithLazyRelease(-time.Second)}},
		{name: "too long to keep", path: "/locks/a", opts: []zklock.Option{zklock.WithLazyRelease(time.Minute + 1)}},
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
