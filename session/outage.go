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

// outage is a time without a usable connection. It keeps why, and logs that after a while, and again after growing
// gaps.
type outage struct {
	cfg        *config
	unresolved func() error // what is wrong with names of servers

	mu      sync.Mutex
	began   time.Time // zero: there is a connection
	why     map[string]error
	last    error
	dials   int
	gap     time.Duration
	timer   *time.Timer
	breaks  int // since countAt
	countAt time.Time
	granted time.Duration // of the last warning, like margin
	margin  time.Duration
}

const (
	firstWarning = 2 * time.Second // enough to get past dead servers to one that is up
	leastGap     = 4 * time.Second
	mostGap      = 10 * time.Minute
	mostBreaks   = 10 // are told in breaksIn
	breaksIn     = 10 * time.Minute
)

// breakLevel counts a connection that broke. A connection that keeps breaking must not fill the log.
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

// waits notes that a server has accepted a connection. A warning says so if the server does not greet.
func (o *outage) waits(to dial.Target) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.began.IsZero() {
		o.why[to.String()] = &dial.Failure{Step: dial.StepHandshake, To: to, Err: os.ErrDeadlineExceeded}
	}
}

func (o *outage) failed(to dial.Target, why error) {
	o.mu.Lock()
	if !o.began.IsZero() {
		o.last, o.why[to.String()] = why, why
		o.dials++
	}
	o.mu.Unlock()
	o.cfg.log.Debug("zookeeper dial failed", "err", why)
}

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

func rounded(d time.Duration) string { return d.Round(time.Millisecond).String() }

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

// terms warns of a timeout or a margin other than the one asked for, once for each value.
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
