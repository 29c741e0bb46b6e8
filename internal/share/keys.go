package share

import (
	"sync"

	"github.com/turnstile-go/turnstile/internal/misuse"
)

// Keys has a lock object for each key that is in use, for the Keyed types of zklock and rwlock. All goroutines of a process
// share the object of a key. It is forgotten when nobody uses it.
//
// A key is in use while a call is under way, and while its object has a state that later calls depend on: a hold that waits
// for its Unlock, lost or not, or a turn that calls of this process may share. So a new object is as good as the one that was
// forgotten. Under Keys.mu, the state is asked whether it is idle, which takes its own mutexes. All methods may be called by
// several goroutines at once.
type Keys[T any] struct {
	prefix string // of all paths
	open   func(path string) (T, State, error)

	mu   sync.Mutex
	all  map[string]*Key[T]
	most int // keys at a time, since the map was made
}

// State is what later calls for a key depend on.
type State interface {
	// WhenIdle reports whether there is no such state. If there is one, and that can end without a call for the key, f is
	// called in a goroutine of its own when it has ended, once. A further call of WhenIdle replaces f.
	WhenIdle(f func()) bool
}

// Key is a key in use. Its user calls Leave.
type Key[T any] struct {
	Lock T

	state State
	in    *Keys[T]
	key   string
	calls int // under way; guarded by Keys.mu
}

// NewKeys returns the keys in a directory, an absolute path or /. open makes the lock of a key, of which NewKeys tries the
// longest path. The error matches session.ErrInvalid.
func NewKeys[T any](dir string, open func(path string) (T, State, error)) (*Keys[T], error) {
	if dir != "/" {
		if err := misuse.ValidatePath(dir); err != nil {
			return nil, err
		}
		dir += "/"
	}
	if _, _, err := open(dir + longest); err != nil {
		return nil, err
	}
	return &Keys[T]{prefix: dir, open: open, all: make(map[string]*Key[T])}, nil
}

// Path returns the path of a key's lock.
func (k *Keys[T]) Path(key string) string { return k.prefix + Escape(key) }

// Enter returns the key for one call. If the key is not in use, it makes its lock.
func (k *Keys[T]) Enter(key string) *Key[T] {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.all[key]
	if e == nil {
		lock, state, err := k.open(k.Path(key))
		if err != nil {
			panic("share: " + err.Error()) // NewKeys has tried it
		}
		e = &Key[T]{Lock: lock, state: state, in: k, key: key}
		k.all[key] = e
		k.most = max(k.most, len(k.all))
	}
	e.calls++
	return e
}

// Leave ends a call.
func (e *Key[T]) Leave() { e.forget(1) }

// roomy is how many keys an empty map may have room for.
const roomy = 64

// forget takes so many calls off a key, and forgets it if it is not in use. It may have been forgotten before, and be in use
// again by another Key.
func (e *Key[T]) forget(ended int) {
	k := e.in
	k.mu.Lock()
	defer k.mu.Unlock()
	e.calls -= ended
	if e.calls > 0 || k.all[e.key] != e || !e.state.WhenIdle(func() { e.forget(0) }) {
		return
	}
	delete(k.all, e.key)
	if len(k.all) == 0 && k.most > roomy { // a map keeps the room for all entries that it ever had
		k.all, k.most = make(map[string]*Key[T]), 0
	}
}

// Len returns how many keys are in use.
func (k *Keys[T]) Len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.all)
}
