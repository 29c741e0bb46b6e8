// Package keyed has a lock object for each key that is in use, for the Keyed types of zklock, rwlock and semaphore. All
// goroutines of a process share the object of a key. It is forgotten when nobody uses it.
//
// A key is in use while a call is under way, and while its object has a state that later calls depend on: a hold that
// waits for its Unlock, lost or not, or a place that calls of this process may share. So a new object is as good as the
// one that was forgotten.
//
// The package has no goroutine. Map.mu is the first mutex that a call takes. Under it, the object is asked whether it is
// in use, which takes its own mutexes.
package keyed

import (
	"sync"

	"github.com/turnstile-go/turnstile/internal/misuse"
)

// Map has the lock objects of the keys that are in use. Its methods may be called by any number of goroutines at once.
type Map[T any] struct {
	Config[T]
	prefix string // of all paths

	mu      sync.Mutex
	entries map[string]*Entry[T] // by key
	most    int                  // the entries there were at a time, since the map was made
}

// Config says what a Map needs to know of its objects.
type Config[T any] struct {
	// Open makes the object at a path. The object calls unused when it may have ceased to be in use without a call,
	// for example when a place that it kept is given up. unused may be called at any time and any number of times, while
	// the object has none of its mutexes locked.
	Open func(path string, unused func()) (T, error)

	// InUse reports whether the object has a state that later calls depend on.
	InUse func(T) bool
}

// Entry is a key in use. Its user calls Leave.
type Entry[T any] struct {
	Lock T

	in    *Map[T]
	key   string
	calls int // under way; in.mu guards it
}

// New returns a Map for the keys in a directory. It makes one object, to see whether that can be done. So Open cannot fail
// after that.
func New[T any](dir string, c Config[T]) (*Map[T], error) {
	if dir != "/" {
		if err := misuse.ValidatePath(dir); err != nil {
			return nil, err
		}
		dir += "/"
	}
	m := &Map[T]{Config: c, prefix: dir, entries: make(map[string]*Entry[T])}
	_, err := c.Open(m.prefix+longest, func() {})
	return m, err
}

// Path returns the path of a key's lock.
func (m *Map[T]) Path(key string) string { return m.prefix + Escape(key) }

// Enter returns the entry of a key, for one call.
func (m *Map[T]) Enter(key string) *Entry[T] {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[key]
	if e == nil {
		e = &Entry[T]{in: m, key: key}
		var err error
		if e.Lock, err = m.Open(m.Path(key), e.unused); err != nil {
			panic("keyed: " + err.Error()) // New has tried it
		}
		m.entries[key] = e
		m.most = max(m.most, len(m.entries))
	}
	e.calls++
	return e
}

// Leave ends a call.
func (e *Entry[T]) Leave() {
	e.in.mu.Lock()
	defer e.in.mu.Unlock()
	e.calls--
	e.forgetLocked()
}

// unused follows a change of the object without a call.
func (e *Entry[T]) unused() {
	e.in.mu.Lock()
	defer e.in.mu.Unlock()
	e.forgetLocked()
}

// forgetLocked forgets the key if it is not in use. It may have been forgotten before, and have a newer entry.
func (e *Entry[T]) forgetLocked() {
	m := e.in
	if e.calls > 0 || m.entries[e.key] != e || m.InUse(e.Lock) {
		return
	}
	delete(m.entries, e.key)
	if len(m.entries) == 0 && m.most > roomy { // a map keeps the room for all entries that it ever had
		m.entries, m.most = make(map[string]*Entry[T]), 0
	}
}

// roomy is how many entries an empty map may have room for.
const roomy = 64

// Len returns how many keys are in use.
func (m *Map[T]) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.entries)
}
