package dial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/internal/callout"
	"github.com/turnstile-go/turnstile/internal/logbook"
	"github.com/turnstile-go/turnstile/internal/misuse"
)

// list is the resolver of the user, which says in each round which servers there are. It is treated like a name
// that may be slow to resolve: while it does not answer, or if it fails, the servers of earlier rounds are dialled. The
// lock of hosts guards its fields.
type list struct {
	ask      func(ctx context.Context) ([]string, error)
	limit    time.Duration    // of one call
	complain func(bad string) // is told of servers that cannot be one, once while they stay the same

	asking bool
	asked  time.Time // when the first call since the last success began; zero: the last one has succeeded
	err    error     // of the last call
	bad    string    // what complain was told
}

// patience returns how long to wait for the answer before the servers of earlier rounds are dialled.
func (l *list) patience(now time.Time) time.Duration {
	if l == nil || !l.asking {
		return 0
	}
	return max(0, staleDelay-now.Sub(l.asked))
}

// failure returns what is wrong with the resolver, or nil.
func (l *list) failure(now time.Time) *logbook.Failure {
	var err error
	switch {
	case l == nil:
	case l.err != nil:
		err = l.err
	case l.asking && now.Sub(l.asked) > staleDelay:
		err = logbook.ErrNoAnswer
	}
	if err == nil {
		return nil
	}
	return &logbook.Failure{Step: logbook.StepResolve, To: logbook.Target{Host: "the resolver"}, Err: err}
}

// askLocked asks the resolver, unless it is being asked.
func (h *hosts) askLocked(now time.Time) {
	l := h.list
	if l == nil || l.asking {
		return
	}
	l.asking = true
	if l.asked.IsZero() {
		l.asked = now
	}
	h.lookups.Go(func() {
		ctx, cancel := context.WithTimeout(h.life, l.limit)
		defer cancel()
		var servers []string
		var err error
		if !callout.Guarded(func() { servers, err = l.ask(ctx) }) {
			err = errors.New("it has called runtime.Goexit")
		}
		h.takeList(servers, err)
	})
}

// takeList takes the resolver's answer. A name that stays keeps its addresses.
func (h *hosts) takeList(answer []string, err error) {
	servers, bad := parseList(answer)
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.list
	l.asking = false
	switch {
	case err != nil:
	case len(servers) == 0 && bad != "":
		err = errors.New(bad)
	case len(servers) == 0:
		err = errors.New("it names no server")
	case bad != "" && bad != l.bad:
		l.complain(bad)
	}
	l.err = err
	if err == nil {
		l.asked, l.bad = time.Time{}, bad
		h.replaceLocked(servers)
	}
	h.tellLocked()
}

func (h *hosts) replaceLocked(servers []Server) {
	now, known := time.Now(), h.names
	h.names = nil
	for _, s := range servers {
		i := slices.IndexFunc(known, func(n *name) bool { return n.Server == s })
		if i >= 0 {
			h.names = append(h.names, known[i])
			continue
		}
		n := h.newName(s)
		h.lookUpLocked(n, now)
		h.names = append(h.names, n)
	}
}

// parseList returns the servers of a resolver's answer, each once, and what is wrong with the others.
func parseList(answer []string) (servers []Server, bad string) {
	var wrong []string
	for _, item := range answer {
		s, err := parseOne(strings.TrimSpace(item))
		switch {
		case err != nil:
			wrong = append(wrong, strings.TrimPrefix(err.Error(), misuse.ErrInvalid.Error()+": "))
		case !slices.Contains(servers, s):
			servers = append(servers, s)
		}
	}
	return servers, strings.Join(wrong, "; ")
}

func parseOne(item string) (Server, error) {
	if strings.ContainsAny(item, ",/") {
		return Server{}, fmt.Errorf("server %q: want one host, with or without a port, and no path", item)
	}
	return parseHostPort(item)
}
