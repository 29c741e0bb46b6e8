package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// logbook writes what a manager's logger is told of sessions and connections. The logger is a
// queuedLog, so it may be called while a lock is held.
type logbook struct {
	log    *slog.Logger
	asked  time.Duration     // the session timeout that is asked for
	margin time.Duration     // that is asked for; 0: the default
	names  func() []*failure // of names that cannot be resolved

	mu      sync.Mutex
	outage  outage
	timer   *time.Timer   // of the outage's next notice; nil if there is none
	granted time.Duration // the timeout of the last warning
	shorter time.Duration // the margin of the last warning
	flaps   allowance     // of lines about connections that come and go
	broken  allowance     // of lines about servers that break the protocol
	over    bool
}

// stateLine is a change of state, with what else a line about it says.
type stateLine struct {
	Change
	to      target
	timeout time.Duration
	left    time.Duration // how long locks stay certain
	margin  time.Duration // that the session keeps
}

func newLogbook(cfg *config, names func() []*failure) *logbook {
	return &logbook{log: cfg.log, asked: cfg.timeout, margin: cfg.margin, names: names}
}

// begin begins an outage, unless there is one.
func (b *logbook) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.beginLocked()
}

func (b *logbook) beginLocked() {
	if !b.over {
		b.outage.begin(time.Now())
		b.setTimerLocked()
	}
}

// failed takes a failure. addr tells servers apart.
func (b *logbook) failed(addr string, f *failure) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.outage.failed(time.Now(), addr, f)
	b.setTimerLocked()
}

// broke takes a failure of a server that has broken the protocol. An operator has to know of that
// even if another server takes over before a notice is due. If there is no outage yet, the failure
// becomes the cause of one.
func (b *logbook) broke(to target, f *failure) {
	b.failed(to.addr, f)
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); b.outage.isNew(f) {
		if ok, _ := b.broken.allow(now, brokenLogged, brokenWindow); ok {
			b.writeLocked(slog.LevelWarn, "zookeeper connection given up",
				slog.String("server", to.String()), slog.String("err", f.reason()))
		}
	}
}

// waiting takes what an attempt waits for.
func (b *logbook) waiting(addr string, f *failure) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.outage.note(time.Now(), addr, f)
}

func (b *logbook) setTimerLocked() {
	if !b.outage.active() {
		return
	}
	wait := max(0, time.Until(b.outage.due()))
	if b.timer == nil {
		b.timer = time.AfterFunc(wait, b.notice)
	} else {
		b.timer.Reset(wait)
	}
}

// notice is called by the timer.
func (b *logbook) notice() {
	names := b.names()
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if !b.outage.active() || now.Before(b.outage.due()) {
		return // it has ended, or was put off, when the timer fired
	}
	var why error = errNoAnswer
	if all := b.outage.notice(now, names); len(all) > 0 {
		why = all
	}
	b.writeLocked(slog.LevelWarn, "no connection to zookeeper", slog.Any("err", why),
		slog.Int("dials", b.outage.dials), span("outage", now.Sub(b.outage.began)))
	b.setTimerLocked()
}

// endLocked ends the outage, and returns how long it was and how many notices it had.
func (b *logbook) endLocked() (took time.Duration, notices int) {
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	return b.outage.end(time.Now())
}

// state takes a change of state.
func (b *logbook) state(s stateLine) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id, server := slog.String("session", sessionID(s.Session)), slog.String("server", s.to.String())
	switch s.To {
	case Connected:
		b.connectedLocked(s, id, server)
	case Suspended:
		level, attrs := slog.LevelDebug, []slog.Attr{id, server, cause(s.Err), span("remaining", s.left)}
		if ok, unlogged := b.flaps.allow(time.Now(), flapsLogged, flapWindow); ok {
			level = slog.LevelWarn
			if unlogged > 0 {
				attrs = append(attrs, slog.Int("unlogged", unlogged))
			}
		}
		b.writeLocked(level, "zookeeper session suspended", attrs...)
		b.beginLocked()
	case Lost:
		b.writeLocked(slog.LevelWarn, "zookeeper session lost", id, server, cause(s.Err))
		b.beginLocked()
	case Closed:
		_, _ = b.endLocked()
		b.over = true
		if s.Session != 0 {
			b.writeLocked(slog.LevelInfo, "zookeeper session closed", id)
		}
	}
}

func (b *logbook) connectedLocked(s stateLine, id, server slog.Attr) {
	took, notices := b.endLocked()
	text, level, attrs := "zookeeper session opened", slog.LevelInfo, []slog.Attr{id, server, span("timeout", s.timeout)}
	if s.From == Suspended {
		text = "zookeeper session reconnected"
		if notices == 0 && b.flaps.muted {
			level = slog.LevelDebug
		}
	}
	if s.From == Suspended || notices > 0 {
		attrs = append(attrs, span("outage", took))
	}
	b.writeLocked(level, text, attrs...)
	b.compareLocked(s, id, server)
	b.compareMarginLocked(s, id, server)
}

// compareMarginLocked warns if a session has a shorter margin than was asked for. It warns once of each margin.
func (b *logbook) compareMarginLocked(s stateLine, id, server slog.Attr) {
	if s.margin >= b.margin || s.margin == b.shorter {
		return
	}
	b.shorter = s.margin
	b.writeLocked(slog.LevelWarn, "zookeeper session has a shorter margin than asked for", id, server,
		span("asked", b.margin), span("margin", s.margin), span("timeout", s.timeout), slog.String("advice",
			"heartbeats need the rest of the timeout: ask for a longer timeout (WithTimeout) or a shorter margin "+
				"(WithMargin), or tell the servers' tick (WithTickTime)"))
}

// compareLocked warns if the servers have granted another timeout than was asked for. It warns
// once of each timeout.
func (b *logbook) compareLocked(s stateLine, id, server slog.Attr) {
	asked := b.asked.Truncate(time.Millisecond) // the protocol has no shorter unit
	if s.timeout == asked || s.timeout == b.granted {
		return
	}
	b.granted = s.timeout
	advice := fmt.Sprintf("ask for %v or less (WithTimeout), or raise maxSessionTimeout on every server: "+
		"it is 20 ticks by default", s.timeout)
	if s.timeout > asked {
		advice = fmt.Sprintf("ask for %v or more (WithTimeout), or lower minSessionTimeout on every server: "+
			"it is two ticks by default, and if it is less, WithTickTime is needed", s.timeout)
	}
	b.writeLocked(slog.LevelWarn, "zookeeper granted another session timeout than asked for", id, server,
		span("asked", asked), span("granted", s.timeout), slog.String("advice", advice))
}

func (b *logbook) writeLocked(level slog.Level, text string, attrs ...slog.Attr) {
	b.log.LogAttrs(context.Background(), level, text, attrs...)
}

// span is an attribute that reads the same in every format. In JSON, slog writes a duration as a
// number of nanoseconds.
func span(key string, d time.Duration) slog.Attr {
	return slog.String(key, d.Round(time.Millisecond).String())
}

// cause is the attribute for why a session was suspended or lost. Session and server have
// attributes of their own.
func cause(err error) slog.Attr {
	var end *endError
	if errors.As(err, &end) {
		err = end.why
	}
	if f, ok := err.(*failure); ok { //nolint:errorlint // what wraps a failure has a text of its own
		return slog.String("cause", f.reason())
	}
	return slog.Any("cause", err)
}

// allowance bounds how often a line is logged: no more than most in any window of time.
type allowance struct {
	allowed  []time.Time
	muted    bool // the last line was not allowed
	unlogged int  // lines since the last one that was allowed
}

const (
	flapsLogged  = 10
	flapWindow   = 10 * time.Minute
	brokenLogged = 10
	brokenWindow = time.Hour
)

// allow reports whether a line may be logged, and how many were not since the last one.
func (a *allowance) allow(now time.Time, most int, window time.Duration) (ok bool, unlogged int) {
	a.allowed = slices.DeleteFunc(a.allowed, func(at time.Time) bool { return now.Sub(at) >= window })
	if a.muted = len(a.allowed) >= most; a.muted {
		a.unlogged++
		return false, 0
	}
	a.allowed = append(a.allowed, now)
	unlogged, a.unlogged = a.unlogged, 0
	return true, unlogged
}
