package core

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/codec"
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
	const create, set, remove, check, failed = codec.OpCreate, codec.OpSetData, codec.OpDelete, codec.OpCheck, codec.OpError
	ops := []any{
		&zk.CreateRequest{Path: "/a", Flags: zk.FlagEphemeralSequential}, &zk.DeleteRequest{Path: "/b"},
		&zk.SetDataRequest{Path: "/c"}, &zk.CheckVersionRequest{Path: "/d"},
	}
	multi, err := bareSession(t, newFakeConfig(t)).operations(ops)
	if err != nil {
		t.Fatal(err)
	}
	all := []int32{create, remove, set, check}
	made := codec.Result{Path: "/a0000000003"}
	refused := codec.Result{Code: codec.CodeNoNode}
	var none codec.Result
	for _, c := range []struct {
		name  string
		kinds []int32
		first codec.Result
		ok    bool
	}{
		{"good", all, made, true},
		{"too few", all[:3], made, false},
		{"none", nil, made, false},
		{"too many", append(slices.Clone(all), check), made, false},
		{"another's node", all, codec.Result{Path: "/b0000000003"}, false},
		{"refused", []int32{failed, failed, failed, failed}, refused, true},
		{"refused with too few", []int32{failed}, refused, false},
		{"none", nil, refused, false},
		{"refused and carried out", []int32{failed, remove, failed, failed}, refused, false},
		{"errors that say nothing", []int32{failed, failed, failed, failed}, none, false},
		{"a create that was a check", []int32{check, remove, set, check}, made, false},
		{"a delete that was a check", []int32{create, check, set, check}, made, false},
		{"a set that was a check", []int32{create, remove, check, check}, made, false},
		{"a check that was a set", []int32{create, remove, set, set}, made, false},
		{"in another order", []int32{create, set, remove, check}, made, false},
	} {
		results := make([]codec.Result, len(c.kinds))
		if len(results) > 0 {
			results[0] = c.first
		}
		for i, kind := range c.kinds {
			results[i].Op = kind
		}
		if err := multi.request.Check(&codec.Answer{Results: results}); (err == nil) != c.ok {
			t.Errorf("%s: %v, want ok: %v", c.name, err, c.ok)
		}
	}
}

// A multi that is refused has the error of the operation for which it was refused.
func TestResponses(t *testing.T) {
	all, err := responses([]codec.Result{
		{Op: codec.OpError}, {Op: codec.OpError, Code: codec.CodeNoNode}, {Op: codec.OpError, Code: codec.CodeRuntimeInconsistency},
	})
	if err != zk.ErrNoNode || len(all) != 3 || all[0].Error != nil || all[1].Error != zk.ErrNoNode || all[2].Error == nil {
		t.Errorf("refused: %v, %v", all, err)
	}
	stat := &zk.Stat{}
	all, err = responses([]codec.Result{{Op: codec.OpCreate, Path: "/a"}, {Op: codec.OpSetData, Stat: stat}})
	if err != nil || len(all) != 2 || all[0].String != "/a" || all[1].Stat != stat {
		t.Errorf("carried out: %v, %v", all, err)
	}
}
