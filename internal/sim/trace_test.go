package sim

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// trace is the log of a run. Lines of one instant are sorted by their text, because the scheduler
// chooses the order in which they were written.
type trace struct {
	start time.Time

	mu    sync.Mutex
	lines []line
	names map[string]string // of uuids
}

type line struct {
	at   time.Duration
	who  string
	text string
}

func newTrace() *trace { return &trace{start: time.Now(), names: make(map[string]string)} }

func (t *trace) add(who, format string, args ...any) {
	at := time.Since(t.start)
	text := fmt.Sprintf(format, args...)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line{at, who, t.nameIDsLocked(text)})
}

// name gives a uuid a name to be shown by.
func (t *trace) name(id, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.names[id] = name
}

func (t *trace) readable(text string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.nameIDsLocked(text)
}

func (t *trace) nameIDsLocked(text string) string {
	const before, length = "_c_", 36
	for from := 0; ; {
		i := strings.Index(text[from:], before)
		if i < 0 {
			return text
		}
		i += from
		from = i + len(before)
		if len(text) < from+length {
			return text
		}
		if name, ok := t.names[text[from:from+length]]; ok {
			text = text[:i] + name + text[from+length:]
			from = i
		}
	}
}

// all returns the lines in order.
func (t *trace) all() []string {
	t.mu.Lock()
	lines := slices.Clone(t.lines)
	t.mu.Unlock()
	slices.SortStableFunc(lines, func(a, b line) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		if c := strings.Compare(a.who, b.who); c != 0 {
			return c
		}
		return strings.Compare(a.text, b.text)
	})
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = fmt.Sprintf("%16.9f %-7s %s", l.at.Seconds(), l.who, l.text)
	}
	return out
}
