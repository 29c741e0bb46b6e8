package ensemble

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// sound is a report without anything to complain about.
func sound() *Report {
	one := func(name, role string) Server {
		const ms = time.Millisecond
		return Server{Name: name, Version: "3.9.4", Role: role, Granted: 10 * time.Second, MedianWrite: 3 * ms, P99: 9 * ms}
	}
	return &Report{
		Servers: []Server{one("a:1", "leader"), one("b:1", "follower"), one("c:1", "follower")},
		Voters:  3, Listed: 3, Path: "/p", Tried: "/", Asked: 10 * time.Second,
	}
}

func TestJudge(t *testing.T) {
	each := func(f func(s *Server)) func(*Report) {
		return func(r *Report) {
			for i := range r.Servers {
				f(&r.Servers[i])
			}
		}
	}
	for says, c := range map[string]struct {
		change  func(*Report)
		problem bool
	}{
		"":                                       {func(*Report) {}, false},
		"No server can be used":                  {each(func(s *Server) { s.Error = "it refuses connections" }), true},
		"b:1: it refuses connections.":           {func(r *Report) { r.Servers[1].Error = "it refuses connections" }, false},
		"may not list /, which locks at /p need": {func(r *Report) { r.Refused = []string{"list"} }, true},
		"There is one server":                    {func(r *Report) { r.Servers, r.Voters, r.Listed = r.Servers[:1], 0, 1; r.Servers[0].Role = "standalone" }, false},
		"4 servers vote. They survive the loss of as many servers as 3 would": {func(r *Report) { r.Voters, r.Listed = 4, 4 }, false},
		"--zk names 1 of the 3 servers that vote":                             {func(r *Report) { r.Servers, r.Listed = r.Servers[:1], 1 }, false},
		"different versions: 3.9.4, 3.9.5":                                    {func(r *Report) { r.Servers[0].Version = "3.9.5" }, false},
		"3.9.3 can lose what it has confirmed (ZOOKEEPER-4925)":               {func(r *Report) { r.Servers[0].Version = "3.9.3" }, false},
		"3.4.14 is not supported":                                             {each(func(s *Server) { s.Version = "3.4.14" }), false},
		"a:1 grants a session timeout of 4s, not the 10s asked for":           {each(func(s *Server) { s.Granted = 4 * time.Second }), false},
		"b:1 is slow: the slowest writes took 700ms":                          {func(r *Report) { r.Servers[1].P99 = 700 * time.Millisecond }, false},
	} {
		r := sound()
		c.change(r)
		r.judge()
		all := r.Warnings
		if c.problem {
			all = r.Problems
		}
		if (len(r.Problems) > 0) != c.problem || (says == "") != (len(all) == 0) || !strings.Contains(strings.Join(all, "\n"), says) {
			t.Errorf("%q: problems %q, warnings %q", says, r.Problems, r.Warnings)
		}
	}
}

func TestParseServing(t *testing.T) {
	for _, c := range []struct {
		text, version, role string
		serving             bool
	}{
		{"Zookeeper version: 3.8.0-1+deb12u1, built on x\nMode: leader\n", "3.8.0", "leader", true},
		{"srvr is not executed because it is not in the whitelist.\n", "", "", true},
		{"This ZooKeeper instance is not currently serving requests\n", "", "", false},
		{"", "", "", true},
	} {
		version, role, serving := parseServing(c.text)
		if version != c.version || role != c.role || serving != c.serving {
			t.Errorf("%q: %q %q %v", c.text, version, role, serving)
		}
	}
}

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
		p := &probe{target: target{name: l.Addr().String(), address: l.Addr().String()}, plan: &Plan{Within: d}}
		p.open(t.Context())
		if got = p.found.Error; got == "it accepted the connection, and did not answer within "+d.String() {
			return
		}
	}
	t.Error(got)
}
