package session

import (
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
)

func TestCheckMade(t *testing.T) {
	for _, c := range []struct {
		asked string
		mode  CreateMode
		made  string
		ok    bool
	}{
		{"/a", Ephemeral, "/a", true},
		{"/a", Ephemeral, "/b", false},
		{"/a", Ephemeral, "", false},
		{"/a", Container, "/a0000000001", false},
		{"/d/lock-", EphemeralSequential, "/d/lock-0000000001", true},
		{"/d/", EphemeralSequential, "/d/0000000001", true},
		{"/d/lock-", EphemeralSequential, "/d/lock-2147483647", true},
		{"/d/lock-", EphemeralSequential, "/d/lock--000000001", true},
		{"/d/lock-", EphemeralSequential, "/d/lock--2147483648", true},
		{"/d/lock-", EphemeralSequential, "/d/lock-", false},
		{"/d/lock-", EphemeralSequential, "/d/lock-1", false},
		{"/d/lock-", EphemeralSequential, "/d/lock-+000000001", false},
		{"/d/lock-", EphemeralSequential, "/d/lock-2147483648", false},
		{"/d/lock-", EphemeralSequential, "/e/lock-0000000001", false},
		{"/d/lock-", EphemeralSequential, "/d/lock-0000000001/x", false},
		{"/d/lock-", EphemeralSequential, "lock-0000000001", false},
	} {
		if err := checkMade(c.asked, c.mode, c.made); (err == nil) != c.ok {
			t.Errorf("asked %q, made %q: %v, want ok: %v", c.asked, c.made, err, c.ok)
		}
	}
	if err := checkMade("/a", Ephemeral, strings.Repeat("x", 1<<20)); len(err.Error()) > 400 {
		t.Errorf("an error of %d bytes", len(err.Error()))
	}
}

func TestCheckResults(t *testing.T) {
	ops := []any{&zk.CreateRequest{Path: "/a", Flags: zk.FlagEphemeralSequential}, &zk.DeleteRequest{Path: "/b"}}
	made := zk.MultiResponse{String: "/a0000000003"}
	for _, c := range []struct {
		name    string
		results []zk.MultiResponse
		refused bool
		ok      bool
	}{
		{"good", []zk.MultiResponse{made, {}}, false, true},
		{"too few", []zk.MultiResponse{made}, false, false},
		{"none", nil, false, false},
		{"too many", []zk.MultiResponse{made, {}, {}}, false, false},
		{"another's node", []zk.MultiResponse{{String: "/b0000000003"}, {}}, false, false},
		{"refused", []zk.MultiResponse{{}, {}}, true, true},
		{"refused as a whole", nil, true, true},
		{"refused with too few", []zk.MultiResponse{{}}, true, false},
	} {
		if err := checkResults(ops, c.results, c.refused); (err == nil) != c.ok {
			t.Errorf("%s: %v, want ok: %v", c.name, err, c.ok)
		}
	}
}
