package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/internal/dial"
)

// outage is a time without a connection that has the session. It keeps why there is none, and the log tells that after
// a while, and again after gaps that grow.
type outage struct {
	cfg        *config
	unresolved func() error // what is wrong with names

	mu      sync.Mutex
	began   time.Time // zero: there is a connection
	why     map[string]error
	last    error
	dials   int
	gap     time.Duration // to the next warning
	timer   *time.Timer
	breaks  int // connections that have broken since countAt
	countAt time.Time
	granted time.Duration // of the last warning about a timeout
	margin  time.Duration // of the last warning about a margin
}

const (
	firstWarning = 2 * time.Second // enough to get past servers that are down if another is not
	leastGap     = 4 * time.Second
	mostGap      = 10 * time.Minute
	mostBreaks   = 10 // are told in breaksIn
	breaksIn     = 10 * time.Minute
)

// breakLevel takes that a connection has broken, and returns the level of the lines about that.
func (o *outage) breakLevel() slog.Level {
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Since(o.countAt) > breaksIn {
		o.breaks, o.countAt = 0, time.Now()
	}
	if o.breaks++; o.breaks > mostBreaks {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

func (o *outage) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.began.IsZero() {
		o.began, o.why, o.dials, o.gap = time.Now(), make(map[string]error), 0, leastGap
		o.timer = time.AfterFunc(firstWarning, o.warn)
	}
}

// waits takes that a server has accepted a connection. A warning says so if the server has not greeted by then.
func (o *outage) waits(to dial.Target) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.began.IsZero() {
		o.why[to.String()] = &dial.Failure{Step: dial.StepHandshake, To: to, Err: os.ErrDeadlineExceeded}
	}
}

// failed takes why an attempt to get a connection has failed, or why one has ended.
func (o *outage) failed(to dial.Target, why error) {
	o.cfg.log.Debug("zookeeper dial failed", "err", why)
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.began.IsZero() {
		o.last, o.why[to.String()] = why, why
		o.dials++
	}
}

// failure returns why there is no connection, as far as that is known, or nil.
func (o *outage) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last
}

func (o *outage) warn() {
	names := o.unresolved()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.began.IsZero() {
		return
	}
	var all []string
	if names != nil {
		all = append(all, names.Error())
	}
	for _, server := range slices.Sorted(maps.Keys(o.why)) {
		all = append(all, o.why[server].Error())
	}
	o.cfg.log.Warn("no connection to zookeeper", "err", errors.New(cmp.Or(strings.Join(all, "; "), "no answer")),
		"dials", o.dials, "outage", rounded(time.Since(o.began)))
	o.timer.Reset(o.gap)
	o.gap = min(2*o.gap, mostGap)
}

// rounded is for lines of the log.
func rounded(d time.Duration) string { return d.Round(time.Millisecond).String() }

// connected ends the outage, and has the log tell of a session that is opened or reconnected.
func (o *outage) connected(s *Session, again bool) {
	attrs := []any{"session", hex(s.ID()), "server", s.server().String(), "timeout", s.Timeout().String()}
	took := o.end()
	if again || took >= firstWarning {
		attrs = append(attrs, "outage", rounded(took))
	}
	if !again {
		o.cfg.log.Info("zookeeper session opened", attrs...)
		return
	}
	level := slog.LevelInfo
	if o.mu.Lock(); took < firstWarning && o.breaks > mostBreaks {
		level = slog.LevelDebug
	}
	o.mu.Unlock()
	o.cfg.log.Log(context.Background(), level, "zookeeper session reconnected", attrs...)
}

// end returns how long the outage was.
func (o *outage) end() (took time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.began.IsZero() {
		o.timer.Stop()
		took = time.Since(o.began)
		o.began, o.why, o.last = time.Time{}, nil, nil
	}
	return took
}

// terms warns of a timeout other than the one asked for, and of a margin that it leaves no room for: once for each
// value.
func (o *outage) terms(session int64, to dial.Target, granted, margin time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	log := o.cfg.log.With("session", hex(session), "server", to.String())
	if asked := o.cfg.timeout.Truncate(time.Millisecond); granted != asked && granted != o.granted {
		o.granted = granted
		advice := fmt.Sprintf("ask for %v or less (WithTimeout), or raise maxSessionTimeout on every server: "+
			"it is 20 ticks by default", granted)
		if granted > asked {
			advice = fmt.Sprintf("ask for %v or more (WithTimeout), or lower minSessionTimeout on every server: "+
				"it is two ticks by default, and if it is less, WithTickTime is needed", granted)
		}
		log.Warn("zookeeper granted another session timeout than asked for", "asked", asked.String(), "granted", granted.String(),
			"advice", advice)
	}
	if margin < o.cfg.margin && margin != o.margin {
		o.margin = margin
		log.Warn("zookeeper session has a shorter margin than asked for", "asked", o.cfg.margin.String(), "margin", margin.String())
	}
}
