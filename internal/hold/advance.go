package hold

import (
	"context"
	"sync"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/place"
)

// An acquisition reserves room in its session before it creates a node. Several locks that are taken together
// reserve the room for all of them at once, and keep it to the end (advance): otherwise goroutines that need
// one node would take what comes free, and a MultiLock would never have enough.

// advance is the room for the nodes of locks that are taken together. In a session it is reserved when the
// first of them is to be created there. After a loss they are created in another session.
type advance struct {
	locks []*Lock         // those that need a node
	over  <-chan struct{} // closed when all of them are given up

	mu    sync.Mutex
	rooms map[*core.Session]*core.Reservation // nil after the end
}

// InAdvance returns a context in which the locks, which are of one manager, are acquired together. A session then
// has to have room for all of their nodes before the first is created, and keeps it for them. The caller
// calls end when the acquisition is over, before it gives up the locks if it has failed. Nodes that are there
// keep their room. A Local that has a node already needs none: the lock is taken with that one.
func InAdvance(ctx context.Context, locks []*Lock) (_ context.Context, end func()) {
	v := &advance{over: ctx.Done(), rooms: make(map[*core.Session]*core.Reservation)}
	for _, one := range locks {
		if one.Alone == nil && (one.Local == nil || !one.Local.hasNode()) {
			v.locks = append(v.locks, one)
		}
	}
	return place.WithRoom(ctx, v), v.end
}

// In returns the room in a session. It reserves it, if nobody has. It returns nil after the end, and if the
// locks need none.
func (v *advance) In(ctx context.Context, s *core.Session) (*core.Reservation, error) {
	v.mu.Lock()
	room, over := v.rooms[s], v.rooms == nil
	v.mu.Unlock()
	if room != nil || over {
		return room, nil
	}
	w := v.want(s)
	if w.Nodes == 0 {
		return nil, nil
	}
	w.Over = v.over // ctx can be that of a contender which others share: it ends when that is granted
	mine, err := s.Reserve(ctx, w)
	if err != nil {
		return nil, err
	}
	return v.keep(s, mine), nil
}

// keep notes the room that was reserved in a session, and returns what In returns. If the end has come, or a shared
// contender was quicker, that room is not needed, and keep ends it.
func (v *advance) keep(s *core.Session, mine *core.Reservation) *core.Reservation {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.rooms == nil || v.rooms[s] != nil {
		mine.End()
		return v.rooms[s]
	}
	v.rooms[s] = mine
	return mine
}

// want returns what the locks need in a session.
func (v *advance) want(s *core.Session) (w core.Want) {
	for _, one := range v.locks {
		lazy := one.Local != nil && one.Local.lazy > 0
		if bytes, ok := one.Queue.RoomFor(s, one.asks(), lazy); ok {
			w.Nodes++
			w.Bytes += bytes
		}
	}
	return w
}

func (v *advance) end() {
	v.mu.Lock()
	rooms := v.rooms
	v.rooms = nil
	v.mu.Unlock()
	for _, r := range rooms {
		r.End()
	}
}

// hasNode reports whether the Local has a node in the directory, or is about to have one.
func (l *Local) hasNode() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.idleLocked()
}
