package election_test

import (
	"context"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// Resign ends the term. The candidate goes to the end of the queue.
func TestResign(t *testing.T) {
	dir := testserver.Path(t)
	all := line(t, dir, "a", "b")
	first := all[0].leads(t)
	if all[1].Resign() {
		t.Error("a candidate that does not lead has resigned")
	}
	if !all[0].Resign() || first.ctx.Err() == nil {
		t.Error("the term goes on after Resign")
	}
	wantErr(t, "cause", first.over(t), election.ErrResigned)
	second := all[1].leads(t)
	testserver.WaitChildren(t, dir, 2)
	if !all[1].Resign() {
		t.Error("the second leader has not resigned")
	}
	wantErr(t, "cause", second.over(t), election.ErrResigned)
	all[0].leads(t)
}

// A candidate that was asked to resign while it waited gives the leadership up as soon as it has it, and
// keeps its later terms.
func TestRevokeWaiter(t *testing.T) {
	dir := testserver.Path(t)
	all := line(t, dir, "a", "b", "c")
	s := all[0].leads(t)
	m := connect(t)
	queue, err := newElection(t, m, dir).Contenders(patient(t))
	must(t, err)
	must(t, zklock.Revoke(patient(t), m, queue[1].Path))
	s.end <- nil
	for {
		select {
		case s := <-all[1].terms: // it may have begun before the request was known
			wantErr(t, "cause", s.over(t), election.ErrResigned)
			continue
		case s = <-all[2].terms:
		}
		break
	}
	zktest.Eventually(t, testserver.Patience, "the first two at the end of the queue, in any order", func() bool {
		queue, err := newElection(t, m, dir).Contenders(patient(t))
		must(t, err)
		return len(queue) == 3 && queue[0].ID == "c"
	})
	s.end <- nil
	for range 2 {
		select {
		case s = <-all[0].terms:
		case s = <-all[1].terms:
		case <-patient(t).Done():
			t.Fatal("no term of a or b")
		}
		s.end <- nil
	}
	all[2].leads(t)
	if err := s.ctx.Err(); err == nil {
		t.Error("the term goes on")
	}
}

// A candidate that was asked to resign before its function was called has had no term. When its context ends, Run returns at
// once, although the servers have not confirmed yet that its node is gone.
func TestPassedTermWaitsForNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, server *zktest.Server, connect func() *session.Manager) {
		leader, candidate := newElection(t, connect(), dir), newElection(t, connect(), dir)
		ctx, cancel := context.WithCancel(t.Context())
		work, led, ended := make(chan struct{}), make(chan error, 1), make(chan error, 1)
		leading, stop := context.WithCancel(t.Context())
		go func() {
			led <- leader.Run(leading, func(context.Context) error { <-work; stop(); return nil })
		}()
		pass(time.Second)
		go func() {
			ended <- candidate.Run(ctx, func(context.Context) error { t.Error("it leads"); return nil })
		}()
		pass(time.Second)
		queue, err := candidate.Contenders(t.Context())
		must(t, err)
		must(t, zklock.Revoke(t.Context(), connect(), queue[1].Path))
		pass(time.Second)
		held := server.HoldReply(zktest.On(zktest.OpDelete, queue[1].Path))
		close(work)
		<-held.Hit()
		began := time.Now()
		cancel()
		must(t, <-ended)
		if took := time.Since(began); took > 0 {
			t.Errorf("Run returns %v after its context has ended", took)
		}
		held.Release()
		<-led
	})
}
