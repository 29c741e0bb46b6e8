package share

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/turnstile-go/turnstile/internal/misuse"
)

// Keys has a lock object for each key in use, and forgets it when no call is under way and the lock has no [State]: a
// new one is as good then. The methods may be called by several goroutines at once.
type Keys[T any] struct {
	prefix string
	open   func(path string) (T, State, error)

	mu   sync.Mutex
	all  map[string]*Key[T]
	most int // at a time, since the map was made
}

// State is what later calls for a key depend on: a hold, or a turn that they may share.
type State interface {
	// WhenIdle reports whether there is none. Otherwise, if that can end without a call for the key, f is called
	// then, once, on a new goroutine. A further call replaces f.
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

// NewKeys returns the keys in a directory, which may be /. open makes the lock of a key. The error matches
// session.ErrInvalid.
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

// Enter returns the key for one call.
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

// forget takes calls off. The key may be in use again by another Key.
func (e *Key[T]) forget(ended int) {
	k := e.in
	k.mu.Lock()
	defer k.mu.Unlock()
	e.calls -= ended
	if e.calls > 0 || k.all[e.key] != e || !e.state.WhenIdle(func() { e.forget(0) }) {
		return
	}
	delete(k.all, e.key)
	if len(k.all) == 0 && k.most > 64 { // maps do not shrink
		k.all, k.most = make(map[string]*Key[T]), 0
	}
}

// Len returns how many keys are in use.
func (k *Keys[T]) Len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.all)
}

// Escape is zklock.EscapePath, which says what it promises.
func Escape(s string) string {
	var b strings.Builder
	head := 0 // of the element, with room for a hash
	for i := 0; i < len(s); {
		_, size := utf8.DecodeRuneInString(s[i:])
		if unit := s[i : i+size]; plain(unit) && !ominous(s, i) {
			b.WriteString(unit)
		} else {
			for i := range len(unit) {
				fmt.Fprintf(&b, "%%%02X", unit[i])
			}
		}
		i += size
		if b.Len() <= maxElement-hashSize {
			head = b.Len()
		}
	}
	element := b.String()
	switch {
	case element == "":
		return "%"
	case len(element) > maxElement:
		// No other element has %~. The end is no digit, which might be the tenth of a sequence number.
		hash := sha256.Sum256([]byte(s))
		return element[:head] + "%~" + hex.EncodeToString(hash[:]) + "~"
	}
	return element
}

var longest = strings.Repeat("k", maxElement)

const (
	maxElement = 255 // of file systems, for tools that export the tree
	hashSize   = 2 + 2*sha256.Size + 1
)

// plain takes a character, or a byte that is not UTF-8.
func plain(unit string) bool {
	return unit != "%" && unit != "/" && misuse.ValidatePath("/x"+unit) == nil
}

// ominous reports whether the character at i must be escaped for what s means as a whole: the first one of a reserved
// word, or the last digit of a sequence number. Some versions of go-zookeeper panic at names that begin with _c_.
func ominous(s string, i int) bool {
	switch i {
	case 0:
		return slices.Contains([]string{".", "..", "zookeeper", "locks", "leases"}, s) || strings.HasPrefix(s, "_c_")
	case len(s) - 1:
		return sequence.MatchString(s[max(0, len(s)-11):])
	}
	return false
}

var sequence = regexp.MustCompile(`^[-_][-0-9][0-9]{9}$`)
