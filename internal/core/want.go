package core

import "context"

// What the lock packages ask of a session's room for ephemeral nodes.

// Want is what Session.Reserve sets aside room for.
type Want struct {
	Nodes, Bytes int      // see Session.NodeBytes
	Deletes      []string // nodes that the transaction deletes which creates the others

	// Yield, if not nil, is called if there is too little room. It has a node of ours removed, and says so with
	// Session.Leaving. It must not block.
	Yield func()

	// Over is closed when the nodes are about to go. If it is nil, that is when the ctx of Reserve ends.
	Over <-chan struct{}
}

func (s *Session) wanted(w Want) wanted {
	size, _ := s.room.netSize(amount{w.Nodes, w.Bytes}, w.Deletes)
	return wanted{size: size, yield: w.Yield, over: w.Over}
}

// Reserve waits for a connection, and then for room for ephemeral nodes, by the limits of session.WithMaxNodes and
// session.WithMaxNodeBytes. It sets the room aside until End of the Reservation. Callers get room in the order in which
// they came, as soon as deletes that are on their way have made enough. Reserve fails with ctx's error, the
// session's, or at once with session.ErrTooManyNodes if what is on its way is not enough.
func (s *Session) Reserve(ctx context.Context, w Want) (*Reservation, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	return s.reserve(ctx, s.wanted(w))
}

// Extend adds to v, as Reserve does, what it lacks for further nodes. It does nothing after End of v.
func (s *Session) Extend(ctx context.Context, v *Reservation, w Want) error {
	return s.extend(ctx, v, s.wanted(w))
}

// NodeBytes returns how much a node takes of session.WithMaxNodeBytes, by the path that its create asks for.
func (s *Session) NodeBytes(path string, sequential bool) int {
	return s.sizeOfNew(path, sequential).bytes
}

// Leaving says that the caller is about to remove a node of ours: others that need room may wait for it.
func (s *Session) Leaving(path string) { s.room.depart(s.room.noted(path)) }

// Adopt counts an ephemeral node that was found, unless it is counted. It takes the room out of v, which may be nil.
func (s *Session) Adopt(v *Reservation, path string) { s.room.found(path, s.sizeOfNew(path, false), v) }

// OnShortage sets a function that is called when the room that is on its way is not enough. The function gives up
// places that are kept although nobody holds them, until they have so many nodes and bytes, and starts to remove their
// nodes. It returns false if there is none. It must not block.
func (s *Session) OnShortage(spare func(nodes, bytes int) bool) {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	s.room.spare = func(a amount) bool { return spare(a.nodes, a.bytes) }
}
