package ensembles

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/zktest"
)

const (
	askEvery  = 50 * time.Millisecond
	askWithin = time.Second
)

// health is a record of which servers serve at which times.
type health struct {
	e      *zktest.Ensemble
	voters int

	mu      sync.Mutex // guards what follows
	modes   []string   // the latest of each server
	samples []sample
	late    time.Duration // by how much a sample was late, at most: how short of processors this process was
}

// sample has the modes of the servers at one time: "leader", "follower", "observer", "read-only", or "" for
// one that did not serve.
type sample struct {
	at    time.Time
	modes []string
}

// serving reports whether a server answered clients that also write.
func (s sample) serving(i int) bool { return s.modes[i] != "" && s.modes[i] != "read-only" }

// quorum reports whether the servers could agree to a write. The first ones have votes.
func (s sample) quorum(voters int) bool {
	votes := 0
	for i := range voters {
		if s.serving(i) {
			votes++
		}
	}
	return votes > voters/2 && slices.Contains(s.modes, "leader")
}

// watchHealth records until ctx ends, when its goroutines end too.
func watchHealth(ctx context.Context, e *zktest.Ensemble, voters int, running *sync.WaitGroup) *health {
	h := &health{e: e, voters: voters, modes: make([]string, e.Len())}
	for i := range e.Len() {
		h.modes[i] = h.ask(ctx, i)
	}
	for i := range e.Len() {
		running.Go(func() {
			for pause(ctx, askEvery) {
				asked := time.Now()
				h.set(i, h.ask(ctx, i), asked)
			}
		})
	}
	running.Go(func() {
		for last := time.Now(); pause(ctx, askEvery); last = time.Now() {
			h.sample(last)
		}
	})
	return h
}

// pause waits for d. It returns false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// ask returns the mode of a server, "" if it does not serve.
func (h *health) ask(ctx context.Context, i int) string {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	text, err := h.e.Word(ctx, i, "srvr")
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(text, "Mode: ")
	mode, _, _ := strings.Cut(after, "\n")
	return mode
}

// set records the answer of a server to a question. A server that has not answered did not serve since
// it was asked.
func (h *health) set(i int, mode string, asked time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.modes[i] = mode
	for _, s := range slices.Backward(h.samples) {
		if mode != "" || s.at.Before(asked) {
			break
		}
		s.modes[i] = ""
	}
}

func (h *health) sample(last time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := sample{at: time.Now(), modes: slices.Clone(h.modes)}
	h.late = max(h.late, s.at.Sub(last)-askEvery)
	h.samples = append(h.samples, s)
}

// modeOf returns the latest mode of a server.
func (h *health) modeOf(i int) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.modes[i]
}

// lateness returns by how much a sample was late, at most.
func (h *health) lateness() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.late
}

// stretch is a time from one moment to another.
type stretch struct{ from, to time.Time }

func (s stretch) length() time.Duration { return s.to.Sub(s.from) }

// common returns how much of two stretches is the same time.
func (s stretch) common(o stretch) time.Duration {
	from, to := s.from, s.to
	if o.from.After(from) {
		from = o.from
	}
	if o.to.Before(to) {
		to = o.to
	}
	return max(0, to.Sub(from))
}

// outages returns the times in which not all clients could work. Of each client, it is told the servers to
// which that client may connect.
func (h *health) outages(clients ...[]int) []stretch {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []stretch
	var began time.Time // of the present outage; zero: there is none
	for _, s := range h.samples {
		works := s.quorum(h.voters)
		for _, servers := range clients {
			works = works && slices.ContainsFunc(servers, s.serving)
		}
		switch {
		case !works && began.IsZero():
			began = s.at
		case works && !began.IsZero():
			all, began = append(all, stretch{began, s.at}), time.Time{}
		}
	}
	if !began.IsZero() {
		all = append(all, stretch{began, h.samples[len(h.samples)-1].at})
	}
	return all
}
