package session

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/wire"
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
	const create, set, remove, check, failed = wire.OpCreate, wire.OpSetData, wire.OpDelete, wire.OpCheck, wire.OpError
	ops := []any{
		&zk.CreateRequest{Path: "/a", Flags: zk.FlagEphemeralSequential}, &zk.DeleteRequest{Path: "/b"},
		&zk.SetDataRequest{Path: "/c"}, &zk.CheckVersionRequest{Path: "/d"},
	}
	all := []int32{create, remove, set, check}
	made := zk.MultiResponse{String: "/a0000000003"}
	for _, c := range []struct {
		name    string
		kinds   []int32
		first   zk.MultiResponse
		refused error
		ok      bool
	}{
		{"good", all, made, nil, true},
		{"too few", all[:3], made, nil, false},
		{"none", nil, made, nil, false},
		{"too many", append(slices.Clone(all), check), made, nil, false},
		{"another's node", all, zk.MultiResponse{String: "/b0000000003"}, nil, false},
		{"refused", []int32{failed, failed, failed, failed}, zk.MultiResponse{}, zk.ErrNoNode, true},
		{"refused with too few", []int32{failed}, zk.MultiResponse{}, zk.ErrNoNode, false},
		{"none", nil, zk.MultiResponse{}, zk.ErrNoNode, false},
		{"refused and carried out", []int32{failed, remove, failed, failed}, zk.MultiResponse{}, zk.ErrNoNode, false},
		{"errors that say nothing", []int32{failed, failed, failed, failed}, zk.MultiResponse{}, nil, false},
		{"a create that was a check", []int32{check, remove, set, check}, made, nil, false},
		{"a delete that was a check", []int32{create, check, set, check}, made, nil, false},
		{"a set that was a check", []int32{create, remove, check, check}, made, nil, false},
		{"a check that was a set", []int32{create, remove, set, set}, made, nil, false},
		{"in another order", []int32{create, set, remove, check}, made, nil, false},
	} {
		results := make([]zk.MultiResponse, len(c.kinds))
		if len(results) > 0 {
			results[0] = c.first
		}
		if err := checkResults(ops, c.kinds, results, c.refused); (err == nil) != c.ok {
			t.Errorf("%s: %v, want ok: %v", c.name, err, c.ok)
		}
	}
}
