//go:build linux

package nemesis

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/zktest"
)

// health is a record of which servers serve at which times.
type health struct {
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
func (s sample) quorum() bool {
	votes := 0
	for i := range voters {
		if s.serving(i) {
			votes++
		}
	}
	return votes > voters/2 && slices.Contains(s.modes, "leader")
}

const askEvery = 50 * time.Millisecond

// watchHealth records until ctx ends, when its goroutines end too.
func watchHealth(ctx context.Context, e *zktest.Ensemble, running *sync.WaitGroup) *health {
	h := &health{modes: make([]string, e.Len())}
	for i := range e.Len() {
		h.modes[i] = modeOf(ctx, e, i)
		running.Go(func() {
			for pause(ctx, askEvery) {
				asked := time.Now()
				h.set(i, modeOf(ctx, e, i), asked)
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

// modeOf returns the mode of a server, "" if it does not serve.
func modeOf(ctx context.Context, e *zktest.Ensemble, i int) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	text, err := e.Word(ctx, i, "srvr")
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

// lateness returns by how much a sample was late, at most.
func (h *health) lateness() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.late
}

// stretch is a time from one moment to another.
type stretch struct{ from, to time.Time }

func (s stretch) length() time.Duration { return s.to.Sub(s.from) }

func (s stretch) String() string { return s.from.Format("15:04:05.000 for ") + ms(s.length()).String() }

// outages returns the times in which not all clients could work. Of each client, it is told the servers to
// which that client may connect.
func (h *health) outages(clients ...[]int) []stretch {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []stretch
	var began time.Time // of the present outage; zero: there is none
	for _, s := range h.samples {
		works := s.quorum()
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

// excuses reports whether an outage explains that a session was lost. The client can hear of its loss a moment after
// the outage.
func (s stretch) excuses(lost time.Time) bool {
	return s.length() > survivable && !lost.Before(s.from) && lost.Before(s.to.Add(defaultTimeout))
}

func longest(all []stretch) (d time.Duration) {
	for _, s := range all {
		d = max(d, s.length())
	}
	return d
}
