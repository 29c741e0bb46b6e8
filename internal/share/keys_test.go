package share_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/turnstile-go/turnstile/internal/share"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
)

// object is a lock that is in use while a test says so.
type object struct {
	path  string
	inUse atomic.Bool

	mu     sync.Mutex
	unused func()
}

func (o *object) WhenIdle(f func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unused = f
	return !o.inUse.Load()
}

// tell tells that the object may be unused.
func (o *object) tell() {
	o.mu.Lock()
	f := o.unused
	o.mu.Unlock()
	if f != nil {
		f()
	}
}

func open(path string) (*object, share.State, error) {
	o := &object{path: path}
	return o, o, nil
}

func newKeys(t *testing.T) *share.Keys[*object] {
	t.Helper()
	m, err := share.NewKeys("/locks", open)
	expect.NoError(t, err)
	return m
}

func wantLen(t *testing.T, when string, m *share.Keys[*object], n int) {
	t.Helper()
	if m.Len() != n {
		t.Errorf("%s: %d keys in use, want %d", when, m.Len(), n)
	}
}

// Calls of one key that overlap have one object, whichever of them ends first. Then the key is forgotten.
func TestCallsShareAnObject(t *testing.T) {
	m := newKeys(t)
	first, second := m.Enter("a"), m.Enter("a")
	if first.Lock != second.Lock || first.Lock.path != "/locks/a" {
		t.Errorf("two calls have %q and %q", first.Lock.path, second.Lock.path)
	}
	if other := m.Enter("b"); other.Lock == first.Lock {
		t.Error("two keys have one object")
	} else {
		other.Leave()
	}
	first.Leave()
	wantLen(t, "one call has ended", m, 1)
	if third := m.Enter("a"); third.Lock != second.Lock {
		t.Error("forgotten while a call was under way")
	} else {
		third.Leave()
	}
	second.Leave()
	wantLen(t, "all calls have ended", m, 0)
	if later := m.Enter("a"); later.Lock == first.Lock {
		t.Error("not forgotten")
	} else {
		later.Leave()
	}
}

// An object that is in use without a call stays, until it says that it is unused.
func TestObjectInUse(t *testing.T) {
	m := newKeys(t)
	e := m.Enter("a")
	e.Lock.tell() // a call is under way
	wantLen(t, "unused in a call", m, 1)
	e.Lock.inUse.Store(true)
	e.Leave()
	e.Lock.tell() // it was in use again by then
	wantLen(t, "in use after the call", m, 1)
	again := m.Enter("a")
	if again.Lock != e.Lock {
		t.Error("forgotten while it was in use")
	}
	e.Lock.inUse.Store(false)
	e.Lock.tell()
	wantLen(t, "unused in the second call", m, 1)
	again.Leave()
	wantLen(t, "unused", m, 0)

	// The object of an earlier entry does not end a later one.
	later := m.Enter("a")
	later.Lock.inUse.Store(true)
	later.Leave()
	e.Lock.tell()
	wantLen(t, "a forgotten object says that it is unused", m, 1)
	later.Lock.inUse.Store(false)
	later.Lock.tell()
	wantLen(t, "unused", m, 0)
}

func TestPaths(t *testing.T) {
	for _, test := range []struct{ dir, key, path string }{
		{"/locks", "a", "/locks/a"},
		{"/", "a", "/a"},
		{"/locks", "", "/locks/%"},
		{"/locks", "..", "/locks/%2E."},
		{"/locks", "a/b", "/locks/a%2Fb"},
	} {
		m, err := share.NewKeys(test.dir, open)
		if err != nil || m.Path(test.key) != test.path {
			t.Errorf("key %q in %s: %v, %v; want %s", test.key, test.dir, m.Path(test.key), err, test.path)
		}
	}
}

// NewKeys tries the longest path that there can be.
func TestLongest(t *testing.T) {
	refused := errors.New("too long")
	var longest int
	_, err := share.NewKeys("/locks", func(path string) (*object, share.State, error) {
		longest = len(path)
		return nil, nil, refused
	})
	if want := len("/locks/") + 255; longest != want || !errors.Is(err, refused) {
		t.Errorf("a path of %d bytes, want %d: %v", longest, want, err)
	}
}
