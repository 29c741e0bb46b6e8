package ensemble

import (
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// sound is a report without anything to complain about.
func sound() *Report {
	one := func(name, role string) Server {
		return Server{Name: name, Address: name, Version: "3.9.4", Role: role, Granted: 10_000, Shortest: 4000, Remaining: 5900,
			Read: Latency{100, 1, 2}, Write: Latency{100, 3, 9}, Same: Yes, ShortBuffer: No}
	}
	return &Report{
		Servers: []Server{one("a:1", "leader"), one("b:1", "follower"), one("c:1", "follower")},
		Voters:  3, Listed: 3, Path: "/p", Tried: "/", Rights: Rights{Yes, Yes, Yes}, Containers: Yes,
		Asked: 10 * time.Second,
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		what    string
		change  func(*Report)
		verdict Verdict
		says    string
	}{
		{"nothing", func(*Report) {}, Good, ""},
		{"no server", func(r *Report) {
			for i := range r.Servers {
				r.Servers[i].Error = "it refuses connections"
			}
		}, Unusable, "No server can be used"},
		{"one is down", func(r *Report) { r.Servers[1].Error = "it refuses connections" }, Warned, "b:1: it refuses connections."},
		{"one name, two addresses", func(r *Report) { r.Servers[1].Address, r.Servers[1].Error = "1.2.3.4:1", "x" }, Warned, "b:1 (1.2.3.4:1): x."},
		{"rights", func(r *Report) { r.Rights.Create = No }, Unusable, "may not create nodes in /, which locks at /p need"},
		{"containers", func(r *Report) { r.Containers = No }, Unusable, "no containers"},
		{"another ensemble", func(r *Report) { r.Servers[2].Same = No }, Unusable, "c:1 belongs to another ensemble than a:1"},
		{"standalone", func(r *Report) { r.Servers, r.Voters, r.Listed = r.Servers[:1], 0, 1; r.Servers[0].Role = "standalone" }, Warned, "There is one server"},
		{"even", func(r *Report) { r.Voters, r.Listed = 4, 4 }, Warned, "4 servers vote. They survive the loss of as many servers as 3 would"},
		{"few in the list", func(r *Report) { r.Servers, r.Listed = r.Servers[:1], 1 }, Warned, "--zk names 1 of the ensemble's 3 servers"},
		{"versions", func(r *Report) { r.Servers[0].Version = "3.9.5" }, Warned, "different versions: 3.9.4, 3.9.5"},
		{"defects", func(r *Report) { r.Servers[0].Version = "3.9.3" }, Warned, "3.9.3 can lose what it has confirmed (ZOOKEEPER-4925)"},
		{"old", func(r *Report) {
			for i := range r.Servers {
				r.Servers[i].Version = "3.4.14"
			}
		}, Warned, "3.4.14 is not supported"},
		{"less granted", func(r *Report) {
			for i := range r.Servers {
				r.Servers[i].Granted = 4000
			}
		}, Warned, "a:1 grants a session timeout of 4s, not the 10s asked for"},
		{"different ticks", func(r *Report) { r.Servers[1].Shortest = 6000 }, Warned, "a:1 and b:1 have different limits"},
		{"slow", func(r *Report) { r.Servers[1].Write.P99 = 700 }, Warned, "b:1 is slow: the slowest writes took 700ms"},
		{"short leases", func(r *Report) { r.Servers[1].Remaining = 1200 }, Warned, "At b:1, an outage of 1.2s ends all locks"},
		{"short requests", func(r *Report) { r.Servers[2].ShortBuffer = Yes }, Warned,
			"c:1 takes requests of less than 1048575 bytes (jute.maxbuffer). "},
	} {
		r := sound()
		c.change(r)
		Judge(r)
		text := strings.Join(append(r.Problems, r.Warnings...), "\n")
		if r.Verdict != c.verdict || !strings.Contains(text, c.says) {
			t.Errorf("%s: %s: %s", c.what, r.Verdict, text)
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

func TestSplit(t *testing.T) {
	servers, chroot := Split("a, b:1,[::1],[::2]:7,1.2.3.4/x/y/")
	if got := strings.Join(servers, " ") + chroot; got != "a:2181 b:1 [::1]:2181 [::2]:7 1.2.3.4:2181/x/y" {
		t.Error(got)
	}
}
