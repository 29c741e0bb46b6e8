package hold

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
)

// Contenders that reserve room for several locks at the same time keep the room of the first. All of it is free in the
// end, also what is reserved after that.
func TestRoomInAdvanceIsKeptOnce(t *testing.T) {
	m := testserver.Connect(t, testserver.Server(t).Addr(0), session.WithMaxNodes(3))
	s := (*core.Session)(testserver.Session(t, m))
	reserve := func(nodes int) *core.Reservation {
		t.Helper()
		v, err := s.Reserve(expect.Patient(t), core.Want{Nodes: nodes})
		expect.NoError(t, err)
		return v
	}
	v := &advance{rooms: make(map[*core.Session]*core.Reservation)}
	first, second, late := reserve(1), reserve(1), reserve(1)
	if v.keep(s, first) != first || v.keep(s, second) != first {
		t.Error("the room of the second is kept")
	}
	v.end()
	if v.keep(s, late) != nil {
		t.Error("room is kept after the end")
	}
	reserve(3).End()
}
