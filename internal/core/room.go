package core

import (
	"context"

	"github.com/turnstile-go/turnstile/internal/room"
)

// What a session tells its account of ephemeral nodes, and what the lock packages ask of it.

type (
	Want        = room.Want
	Reservation = room.Reservation
)

// Reserve waits for a connection, and then for room for ephemeral nodes, by the limits of
// session.WithMaxNodes and session.WithMaxNodeBytes: see room.Account.
func (s *Session) Reserve(ctx context.Context, w Want) (*Reservation, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	return s.room.Reserve(ctx, w)
}

// Extend adds to v, as Reserve does, what it lacks for further nodes. It does nothing after End of v.
func (s *Session) Extend(ctx context.Context, v *Reservation, w Want) error {
	return s.room.Extend(ctx, v, w)
}

func (s *Session) sizeOf(path string, sequential bool) room.Size {
	return room.SizeOf(s.outward(path), sequential)
}

// NodeBytes returns how much a node takes of session.WithMaxNodeBytes, by the path that its create asks for.
func (s *Session) NodeBytes(path string, sequential bool) int {
	return s.sizeOf(path, sequential).Bytes
}

// Leaving says that the caller is about to remove a node of ours: others that need room may wait for it.
func (s *Session) Leaving(path string) { s.room.Depart(s.room.At(path)) }

// IsLeaving reports whether that was said of a node that is still there, as far as this session knows.
func (s *Session) IsLeaving(path string) bool { return s.room.IsLeaving(path) }

// Adopt counts an ephemeral node that was found, unless it is counted. It takes the room out of v, which may
// be nil.
func (s *Session) Adopt(v *Reservation, path string) { s.room.Found(path, s.sizeOf(path, false), v) }

// OnShortage sets a function that is called when the room that is on its way is not enough. The function
// gives up places that are kept although nobody holds them, until they have so many nodes and bytes, and
// starts to remove their nodes. It returns false if there is none. It must not block.
func (s *Session) OnShortage(spare func(nodes, bytes int) bool) {
	s.room.OnShortage(func(size room.Size) bool { return spare(size.Nodes, size.Bytes) })
}

// settle tells the account what became of a request. paths are those of the nodes that it has made.
func settle(b *room.Booking, paths []string, err error) {
	switch {
	case err == nil:
		b.Made(paths)
	case Uncertain(err):
		b.Lost()
	default:
		b.Failed()
	}
}
