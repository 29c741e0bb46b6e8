package zktest

import (
	"context"
	"fmt"
	"time"

	"github.com/turnstile-go/turnstile/internal/switches"
	"github.com/turnstile-go/turnstile/zktest/internal/javaserver"
	"github.com/turnstile-go/turnstile/zktest/internal/quorum"
)

// What is in this file is for the tests of this module. Package testserver says what it does.

func init() {
	switches.Of = func(servers any) any {
		if e, ok := servers.(*Ensemble); ok {
			return homeSwitch{e}
		}
		return serverSwitches{servers.(*Server)}
	}
	switches.ClockRate = func(rate float64) any {
		return option(func(c *config) error { c.Rate = rate; return nil })
	}
	switches.Between = func(f func([]switches.Ports) ([][]switches.Ports, error)) any {
		return realOption(func(c *realConfig) error { c.between = f; return nil })
	}
}

type homeSwitch struct{ e *Ensemble }

func (h homeSwitch) SetHome(i int, home string) error {
	return h.e.wrap("set the home of", i, h.e.servers[i].SetHome(home))
}

// portsSeen returns the ports at which each server of a new ensemble looks for the others.
func (c *realConfig) portsSeen(ports []javaserver.Ports) ([][]javaserver.Ports, error) {
	all := make([]switches.Ports, len(ports))
	seen := make([][]javaserver.Ports, len(ports))
	for i, p := range ports {
		all[i] = switches.Ports{Quorum: p.Quorum, Election: p.Election}
		seen[i] = ports
	}
	if c.between == nil {
		return seen, nil
	}
	relays, err := c.between(all)
	for i, row := range relays {
		seen[i] = make([]javaserver.Ports, len(ports))
		for j, p := range row {
			seen[i][j] = ports[j]
			seen[i][j].Quorum, seen[i][j].Election = p.Quorum, p.Election
		}
	}
	return seen, err
}

type serverSwitches struct{ srv *Server }

func (w serverSwitches) Expiry(session int64) (at time.Time, ok bool) {
	w.srv.with(func(st *quorum.State) { at, ok = st.Expiry(session) })
	return at, ok
}

func (w serverSwitches) ServerOf(session int64) (server int, ok bool) {
	w.srv.with(func(st *quorum.State) { server, ok = st.ServerOf(session) })
	return server, ok
}

func (w serverSwitches) Failure(i int) error { return w.srv.failure(i) }

func (w serverSwitches) DelayLink(from, to int, d time.Duration) {
	w.srv.with(func(st *quorum.State) { st.DelayLink(from, to, d) })
}

func (w serverSwitches) SetPingLag(d time.Duration) {
	w.srv.with(func(st *quorum.State) { st.PingLag = d })
}

func (w serverSwitches) SetCommitDelay(d time.Duration) {
	w.srv.with(func(st *quorum.State) { st.CommitDelay = d })
}

func (w serverSwitches) SetSessionTimeoutsOf(i int, shortest, longest time.Duration) {
	w.srv.member(i, func(m *quorum.Member) { m.MinSession, m.MaxSession = shortest, longest })
}

func (w serverSwitches) SetSequence(path string, next int32) error {
	var failed error
	err := w.srv.state.Do(context.Background(), func(st *quorum.State) { failed = st.SetSequence(path, next) })
	if err == nil && failed != nil {
		err = fmt.Errorf("zktest: set the sequence of %s: %w", path, failed)
	}
	return err
}

func (w serverSwitches) ReapContainers() (reaped int) {
	w.srv.with(func(st *quorum.State) { reaped = st.Reap() })
	return reaped
}

func (w serverSwitches) Throttle(m Match) {
	var throttle func(frame []byte, session int64) bool
	if m != nil {
		throttle = func(frame []byte, session int64) bool {
			r := parseRequest(frame)
			r.Session, r.At = session, time.Now()
			return m(r)
		}
	}
	w.srv.with(func(st *quorum.State) { st.Throttle = throttle })
}
