package logbook

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Logbook writes what a logger is told of sessions and connections. Make one with [New], for one session
// after the other.
type Logbook struct {
	log   *slog.Logger
	asked Terms
	names func() []*Failure

	mu        sync.Mutex
	outage    outage
	timer     *time.Timer   // of the outage's next notice; nil if there is none
	suspended bool          // the session is live, and has no connection
	granted   time.Duration // the timeout of the last warning
	shorter   time.Duration // the margin of the last warning
	flaps     allowance     // of lines about connections that come and go
	broken    allowance     // of lines about servers that break the protocol
	over      bool
}

// Terms are the session timeout, and the margin of it that is kept, as they were asked for or granted. A
// margin of 0 that is asked for is the default.
type Terms struct{ Timeout, Margin time.Duration }

// New returns a Logbook for sessions that ask for some terms. names returns the failures of names that cannot
// be resolved now. It is called by a timer, with no mutex held.
func New(log *slog.Logger, asked Terms, names func() []*Failure) *Logbook {
	return &Logbook{log: log, asked: asked, names: names}
}

// Begin begins an outage, unless there is one: from now on there should be a connection. Suspended and Lost
// begin one too. Connected and Closed end it.
func (b *Logbook) Begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.beginLocked()
}

func (b *Logbook) beginLocked() {
	if !b.over {
		b.outage.begin(time.Now())
		b.setTimerLocked()
	}
}

// Failed takes a failure. If there is no outage, it does nothing.
func (b *Logbook) Failed(f *Failure) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failedLocked(f)
}

func (b *Logbook) failedLocked(f *Failure) {
	b.outage.failed(time.Now(), f)
	b.setTimerLocked()
}

// Broke takes a failure of a server that has broken the protocol. An operator has to know of that even if
// another server takes over before a notice is due. If there is no outage, Broke does nothing: the failure is
// the cause that Suspended takes next.
func (b *Logbook) Broke(f *Failure) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failedLocked(f)
	if b.outage.isNew(f) {
		if ok, _ := b.broken.allow(time.Now(), brokenLogged, brokenWindow); ok {
			b.writeLocked(slog.LevelWarn, "zookeeper connection given up",
				slog.String("server", f.To.String()), slog.String("err", f.reason()))
		}
	}
}

// Waiting takes what an attempt waits for. A notice says so if the attempt has not failed by then.
func (b *Logbook) Waiting(f *Failure) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.outage.note(time.Now(), f)
}

func (b *Logbook) setTimerLocked() {
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
func (b *Logbook) notice() {
	names := b.names()
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if !b.outage.active() || now.Before(b.outage.due()) {
		return // it has ended, or was put off, when the timer fired
	}
	why := ErrNoAnswer
	if all := b.outage.notice(now, names); len(all) > 0 {
		why = all
	}
	b.writeLocked(slog.LevelWarn, "no connection to zookeeper", slog.Any("err", why),
		slog.Int("dials", b.outage.dials), span("outage", now.Sub(b.outage.began)))
	b.setTimerLocked()
}

// endLocked ends the outage, and returns how long it was and how many notices it had.
func (b *Logbook) endLocked() (took time.Duration, notices int) {
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	return b.outage.end(time.Now())
}

// Connected takes that a session has a connection: its first one or, after Suspended, another one. The
// session is named as the servers log it. Terms that differ from those asked for bring a warning, once for
// each timeout and each margin.
func (b *Logbook) Connected(session string, to Target, granted Terms) {
	b.mu.Lock()
	defer b.mu.Unlock()
	again := b.suspended
	b.suspended = false
	took, notices := b.endLocked()
	text, level := "zookeeper session opened", slog.LevelInfo
	attrs := []slog.Attr{span("timeout", granted.Timeout)}
	if again {
		text = "zookeeper session reconnected"
		if notices == 0 && b.flaps.muted {
			level = slog.LevelDebug
		}
	}
	if again || notices > 0 {
		attrs = append(attrs, span("outage", took))
	}
	b.sessionLocked(level, text, session, to, attrs...)
	b.compareTimeoutLocked(session, to, granted.Timeout)
	b.compareMarginLocked(session, to, granted)
}

// compareTimeoutLocked warns if the servers have granted another timeout than was asked for. It warns
// once of each timeout.
func (b *Logbook) compareTimeoutLocked(session string, to Target, granted time.Duration) {
	asked := b.asked.Timeout.Truncate(time.Millisecond) // the protocol has no shorter unit
	if granted == asked || granted == b.granted {
		return
	}
	b.granted = granted
	advice := fmt.Sprintf("ask for %v or less (WithTimeout), or raise maxSessionTimeout on every server: "+
		"it is 20 ticks by default", granted)
	if granted > asked {
		advice = fmt.Sprintf("ask for %v or more (WithTimeout), or lower minSessionTimeout on every server: "+
			"it is two ticks by default, and if it is less, WithTickTime is needed", granted)
	}
	b.sessionLocked(slog.LevelWarn, "zookeeper granted another session timeout than asked for", session, to,
		span("asked", asked), span("granted", granted), slog.String("advice", advice))
}

// compareMarginLocked warns if a session has a shorter margin than was asked for. It warns once of each
// margin.
func (b *Logbook) compareMarginLocked(session string, to Target, granted Terms) {
	if granted.Margin >= b.asked.Margin || granted.Margin == b.shorter {
		return
	}
	b.shorter = granted.Margin
	b.sessionLocked(slog.LevelWarn, "zookeeper session has a shorter margin than asked for", session, to,
		span("asked", b.asked.Margin), span("margin", granted.Margin), span("timeout", granted.Timeout),
		slog.String("advice",
			"heartbeats need the rest of the timeout: ask for a longer timeout (WithTimeout) or a shorter margin "+
				"(WithMargin), or tell the servers' tick (WithTickTime)"))
}

// Suspended takes that the session's connection has ended, and why. Without another one, the session stays
// certain for as long as remains.
func (b *Logbook) Suspended(session string, to Target, why error, remains time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.suspended = true
	level, attrs := slog.LevelDebug, []slog.Attr{cause(why), span("remaining", remains)}
	if ok, unlogged := b.flaps.allow(time.Now(), flapsLogged, flapWindow); ok {
		level = slog.LevelWarn
		if unlogged > 0 {
			attrs = append(attrs, slog.Int("unlogged", unlogged))
		}
	}
	b.sessionLocked(level, "zookeeper session suspended", session, to, attrs...)
	b.beginLocked()
}

// Lost takes that the session is lost, and why. to is the server of its last connection.
func (b *Logbook) Lost(session string, to Target, why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.suspended = false
	b.sessionLocked(slog.LevelWarn, "zookeeper session lost", session, to, cause(why))
	b.beginLocked()
}

// Closed takes that no session follows. If there is none that ends, session is "". No outage begins any more.
func (b *Logbook) Closed(session string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, _ = b.endLocked()
	b.over = true
	if session != "" {
		b.writeLocked(slog.LevelInfo, "zookeeper session closed", slog.String("session", session))
	}
}

// sessionLocked writes a line about a session and the server of its present or last connection.
func (b *Logbook) sessionLocked(level slog.Level, text, session string, to Target, attrs ...slog.Attr) {
	b.writeLocked(level, text,
		append([]slog.Attr{slog.String("session", session), slog.String("server", to.String())}, attrs...)...)
}

func (b *Logbook) writeLocked(level slog.Level, text string, attrs ...slog.Attr) {
	b.log.LogAttrs(context.Background(), level, text, attrs...)
}

// span is an attribute that reads the same in every format. In JSON, slog writes a duration as a
// number of nanoseconds.
func span(key string, d time.Duration) slog.Attr {
	return slog.String(key, d.Round(time.Millisecond).String())
}

// cause is the attribute for why a session was suspended or lost. A line about a session names the server
// already.
func cause(err error) slog.Attr {
	if f, ok := err.(*Failure); ok { //nolint:errorlint // what wraps a failure has a text of its own
		return slog.String("cause", f.reason())
	}
	return slog.Any("cause", err)
}
