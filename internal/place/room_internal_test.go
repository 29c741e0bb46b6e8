package place

import (
	"errors"
	"testing"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/kinds"
	"github.com/turnstile-go/turnstile/session"
)

// A renewal by the contender of a Local that follows a turn may need room, if its node is not counted any more.
func TestRenewalWithoutRoom(t *testing.T) {
	m := testserver.Connect(t, testserver.Server(t).Addr(0), session.WithMaxNodes(1))
	s := testserver.Session(t, m)
	if _, err := s.Create(t.Context(), testserver.Path(t), nil, session.Ephemeral); err != nil {
		t.Fatal(err)
	}
	q, err := New((*core.Manager)(m), testserver.Path(t))
	if err != nil {
		t.Fatal(err)
	}
	r := &Request{Kind: mutexKind, Prefix: kinds.PrefixLock}
	old := newAttempt(q, (*core.Session)(s), r, &Entry{})
	old.path = "/old"
	a := newAttempt(q, (*core.Session)(s), r, &Entry{renews: old, Before: &Turn{place: &place{path: "/before"}}, Shown: &Shown{}})
	if _, _, err := (entrants{{a, t.Context()}}).reserve(t.Context()); !errors.Is(err, session.ErrTooManyNodes) {
		t.Errorf("%v, want %v", err, session.ErrTooManyNodes)
	}
}
