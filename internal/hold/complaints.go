package hold

import (
	"regexp"
	"sync"
	"time"
)

// complainEvery is how often an error that stays the same is logged.
const complainEvery = time.Minute

// complaints decides which errors of a Locker's Lock go to the log: the first, each that differs
// from the one before it, and otherwise one a minute. The goroutines of one Locker share it.
type complaints struct {
	mu   sync.Mutex
	last string // text of the last error; "": none since the last success
	at   time.Time
}

// changing matches what differs from one try to the next: names of nodes, ids of sessions.
var changing = regexp.MustCompile(`[0-9a-f-]*[0-9][0-9a-f-]*`)

func (c *complaints) isNews(err error) bool {
	text := changing.ReplaceAllString(err.Error(), "#")
	c.mu.Lock()
	defer c.mu.Unlock()
	if text == c.last && time.Since(c.at) < complainEvery {
		return false
	}
	c.last, c.at = text, time.Now()
	return true
}

// over notes that a call has succeeded.
func (c *complaints) over() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = ""
}
