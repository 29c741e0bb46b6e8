package cli

import (
	"fmt"
	"time"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
)

// event is a change of a lock, a line of watch. The names of its JSON fields are part of the output of the
// command.
type event struct {
	Time  time.Time `json:"time"`
	Event string    `json:"event"`
	*locks.Contender
	Limit  int `json:"limit,omitempty"`  // of limit: the number of leases
	Missed int `json:"missed,omitempty"` // of missed: the number of contenders
	// Text says more, for people.
	Text string `json:"text,omitempty"`
}

// Events. At the beginning, watch prints holds and waits for the contenders that are there.
const (
	evHolds   = "holds"
	evWaits   = "waits"
	evCame    = "came"
	evGranted = "granted"
	evEnded   = "ended"
	evLeft    = "left"
	evAsked   = "asked"
	evLimit   = "limit"
	evFree    = "free"
	evNone    = "none"
	evMissed  = "missed"

	evDisconnected = "disconnected"
	evConnected    = "connected"
	evLost         = "lost"
)

// history is what watch has seen of a lock.
type history struct {
	last    *locks.Lock          // nil: not looked yet
	granted map[string]time.Time // by node: when it was seen to be granted
}

// look returns the changes since the last look, in an order in which they can have happened.
func (h *history) look(l *locks.Lock, now time.Time) []event {
	first := h.last == nil
	before := h.last
	if first {
		before, h.granted = &locks.Lock{}, map[string]time.Time{}
	}
	h.last = l
	d := differences{before: byKey(before), after: byKey(l), h: h, now: now, first: first}
	for _, c := range before.Contenders {
		d.gone(c)
	}
	for k := range d.after {
		if _, known := d.before[k]; !known {
			d.count++
		}
	}
	if n := unseen(before, l, d.count); !first && n > 0 {
		d.add(evMissed, nil, count(n, "contender", "contenders")+" came and left between two looks")
		d.out[len(d.out)-1].Missed = n
	}
	if !first && l.Limit != before.Limit && l.Limit > 0 {
		d.add(evLimit, nil, fmt.Sprintf("%d leases, was %d", l.Limit, before.Limit))
		d.out[len(d.out)-1].Limit = l.Limit
	}
	for _, c := range l.Contenders {
		d.there(c)
	}
	switch {
	case l.Stat == nil && (first || before.Stat != nil):
		d.add(evNone, nil, "the path does not exist: nobody contends")
	case len(l.Contenders) == 0 && (first || len(before.Contenders) > 0):
		d.add(evFree, nil, "nobody contends")
	}
	return d.out
}

// key tells nodes apart, also those of one name.
type key struct {
	path  string
	token int64
}

func keyOf(c locks.Contender) key {
	if c.Known && !locks.UniqueName(c.Node) {
		return key{c.Path, c.Token}
	}
	return key{c.Path, 0}
}

func byKey(l *locks.Lock) map[key]locks.Contender {
	all := make(map[key]locks.Contender, len(l.Contenders))
	for _, c := range l.Contenders {
		all[keyOf(c)] = c
	}
	return all
}

// unseen returns how many contenders came and left between two looks, of which seen changes are known. It is 0
// if the directory is not the one it was.
func unseen(before, after *locks.Lock, seen int) int {
	if before.Stat == nil || after.Stat == nil || before.Birth != after.Birth {
		return 0
	}
	return (int(after.Changes-before.Changes) - seen) / 2
}

// differences collects the changes between two looks.
type differences struct {
	before, after map[key]locks.Contender
	h             *history
	now           time.Time
	first         bool
	count         int // changes of children
	out           []event
}

func (d *differences) add(what string, c *locks.Contender, text string) {
	d.out = append(d.out, event{Time: d.now.UTC(), Event: what, Contender: c, Text: text})
}

// gone tells of a contender of the last look.
func (d *differences) gone(c locks.Contender) {
	if _, stays := d.after[keyOf(c)]; stays {
		return
	}
	d.count++
	at, seen := d.h.granted[c.Path]
	delete(d.h.granted, c.Path)
	switch {
	case !c.Holds:
		d.add(evLeft, &c, "without the lock")
	case seen:
		d.add(evEnded, &c, "granted "+span(d.now.Sub(at))+" ago")
	default:
		d.add(evEnded, &c, "")
	}
}

// there tells of a contender of this look.
func (d *differences) there(c locks.Contender) {
	was, known := d.before[keyOf(c)]
	switch {
	case d.first && c.Holds:
		d.add(evHolds, &c, "queued "+ago(c.Since, d.now)+" ago")
	case d.first:
		d.add(evWaits, &c, "queued "+ago(c.Since, d.now)+" ago")
	case c.Holds && !was.Holds:
		d.h.granted[c.Path] = d.now
		text := "at once"
		if known {
			text = "queued " + ago(c.Since, d.now) + " ago"
		}
		d.add(evGranted, &c, text)
	case !known:
		d.add(evCame, &c, "")
	}
	if c.Revoked && !was.Revoked && !d.first {
		d.add(evAsked, &c, "somebody asks it to give the lock up")
	}
}
