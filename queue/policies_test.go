package queue_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// nodesOf parses names, which are those of contenders.
func nodesOf(t *testing.T, names ...string) []queue.Node {
	t.Helper()
	var nodes []queue.Node
	for _, name := range names {
		n, ok := queue.ParseNode(name)
		if !ok {
			t.Fatalf("%s is no contender's name", name)
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// Holders goes by the table of weights, whatever the order of the nodes.
func TestHolders(t *testing.T) {
	for _, c := range []struct {
		name  string
		kind  *queue.Kind
		nodes []string
		want  []bool
	}{
		{"nobody", queue.Mutex(), nil, []bool{}},
		{"a mutex", queue.Mutex(), []string{"_c_b-lock-0000000002", "a__lock__0000000001"}, []bool{false, true}},
		{"readers before a writer", queue.Reader(),
			[]string{"__WRIT__0000000003", "__READ__0000000001", "a__rlock__0000000002", "__READ__0000000004"},
			[]bool{false, true, true, false}},
		{"a writer before readers", queue.Writer(),
			[]string{"__READ__0000000002", "__WRIT__0000000001"}, []bool{false, true}},
		{"a writer that becomes a reader", queue.Writer(),
			[]string{"__READ__0000000001", "__WRIT__0000000001", "__READ__0000000002"}, []bool{true, true, false}},
		{"leases", queue.Semaphore(3),
			[]string{"lease-0000000003", "_c_a-x2-lease-0000000001", "lease-0000000002"}, []bool{false, true, true}},
		{"more than the limit", queue.Semaphore(1), []string{"_c_a-x2-lease-0000000001"}, []bool{false}},
		{"no limit is known", queue.Semaphore(0), []string{"lease-0000000001"}, []bool{false}},
	} {
		holds, err := queue.Holders(c.kind, nodesOf(t, c.nodes...), queue.Config{})
		if err != nil || !slices.Equal(holds, c.want) {
			t.Errorf("%s: %v, %v; want %v", c.name, holds, err, c.want)
		}
	}
}

// A kind with a configuration goes by it.
func TestHoldersByConfiguration(t *testing.T) {
	unreadable := errors.New("no limit")
	kind := &queue.Kind{Name: "pool", Prefixes: []string{queue.PrefixLease}, Configuration: &queue.Configuration{
		Config: []byte("2"),
		Policy: func(me queue.Node, c queue.Config) (queue.Policy, error) {
			if len(c.Data) == 0 {
				return queue.Policy{}, unreadable
			}
			return queue.Semaphore(int(c.Data[0] - '0')).Policy(me), nil
		},
	}}
	nodes := nodesOf(t, "lease-0000000001", "lease-0000000002", "lease-0000000003")
	holds, err := queue.Holders(kind, nodes, queue.Config{Data: []byte("2")})
	if err != nil || !slices.Equal(holds, []bool{true, true, false}) {
		t.Errorf("%v, %v", holds, err)
	}
	if _, err := queue.Holders(kind, nodes, queue.Config{}); !errors.Is(err, unreadable) {
		t.Errorf("without a limit: %v", err)
	}
	if _, err := queue.Holders(&queue.Kind{}, nodes, queue.Config{}); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("a bad kind: %v", err)
	}
}

// A kind is made for each call: a caller may change it.
func TestKindsAreTheCallers(t *testing.T) {
	queue.Mutex().Prefixes[0] = queue.PrefixLatch
	if got := queue.Mutex().Prefixes[0]; got != queue.PrefixLock {
		t.Errorf("prefix %q", got)
	}
}

func TestOpError(t *testing.T) {
	why := errors.New("no rights")
	op := func(op, path string, err error) error { return &queue.OpError{Op: op, Path: path, Err: err} }
	for _, c := range []struct {
		err  error
		text string
	}{
		{op("acquire", "/a", why), "acquire /a: no rights"},
		{op("unlock", "/a", op("release", "/a", why)), "unlock /a: no rights"},
		{op("unlock", "/a", op("release", "/a", op("lock", "/a", why))), "unlock /a: no rights"},
		{op("acquire", "/a, /b", op("acquire", "/b", why)), "acquire /a, /b: acquire /b: no rights"},
		{op("unlock", "/a", fmt.Errorf("late: %w", op("lock", "/a", why))), "unlock /a: late: lock /a: no rights"},
	} {
		if c.err.Error() != c.text || !errors.Is(c.err, why) {
			t.Errorf("%q, want %q; it matches the reason: %v", c.err, c.text, errors.Is(c.err, why))
		}
		var found *queue.OpError
		if !errors.As(c.err, &found) || found != c.err {
			t.Errorf("%v: errors.As finds %v", c.err, found)
		}
	}
}
