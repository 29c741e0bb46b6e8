package place

import (
	"context"
	"path"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/kinds"
)

// An acquisition reserves room in its session before it creates a node, or gets it from the room of several locks that
// are taken together.

// RoomInAdvance has room for the nodes of several locks.
type RoomInAdvance interface {
	// In returns the room in a session, or nil if there is none.
	In(ctx context.Context, s *core.Session) (*core.Reservation, error)
}

// advanceKey is the context key of a RoomInAdvance.
type advanceKey struct{}

// WithRoom returns a context for acquisitions whose nodes have room in advance.
func WithRoom(ctx context.Context, v RoomInAdvance) context.Context {
	return context.WithValue(ctx, advanceKey{}, v)
}

// RoomFor returns the bytes of room that the node of a request needs. It returns false if the request is not valid:
// the acquisition says what is wrong.
func (q *Queue) RoomFor(s *core.Session, r Request, lazy bool) (bytes int, ok bool) {
	if r.complete() != nil {
		return 0, false
	}
	return s.NodeBytes(path.Join(q.dir, kinds.NodeName(sampleID, r.Prefix, r.Weight, lazy)), true), true
}

// sampleID is as long as the id of an attempt.
const sampleID = "00000000-0000-0000-0000-000000000000"
