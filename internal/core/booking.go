package core

import (
	"context"
	"slices"

	"github.com/go-zookeeper/zk"
)

// booking is the room of one request that creates nodes, in flight or in doubt.
type booking struct {
	r      *room
	shares []*share // of each node, or of each operation of a multi: nil if that makes no ephemeral node
	credit amount   // the room of nodes that the request deletes, which its creates take over
}

// netSize returns the room that a request needs which creates some nodes and deletes others, and how much of the
// room of the others it takes over.
func (r *room) netSize(creates amount, deletes []string) (net, credit amount) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, path := range slices.Compact(slices.Sorted(slices.Values(deletes))) {
		if st := r.nodes[path]; st != nil {
			credit = credit.plus(st.size)
		}
	}
	net = creates.beyond(credit)
	return net, creates.minus(net)
}

// book takes the room of a request out of a reservation, which is open. If that has too little left, it returns nil and
// how much is missing.
func (r *room) book(v *Reservation, sizes []amount, deletes []string) (_ *booking, missing amount) {
	net, credit := r.netSize(sum(sizes), deletes)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !net.fits(v.free) {
		return nil, net.beyond(v.free)
	}
	v.free = v.free.minus(net)
	b := &booking{r: r, credit: credit, shares: make([]*share, len(sizes))}
	for i, size := range sizes {
		if size != (amount{}) {
			b.shares[i] = &share{size: size, of: v}
			r.unknown++
		}
	}
	return b, amount{}
}

func sum(sizes []amount) (all amount) {
	for _, one := range sizes {
		all = all.plus(one)
	}
	return all
}

// bookFrom takes the room of a request out of v, which gets more if it has too little left. If v is nil or has ended,
// bookFrom makes a reservation for this request alone.
func (s *Session) bookFrom(ctx context.Context, v *Reservation, sizes []amount, deletes ...string) (*booking, error) {
	for {
		if !s.room.isOpen(v) {
			v = s.room.reservation(ctx)
			defer v.End()
		}
		b, missing := s.room.book(v, sizes, deletes)
		if b != nil {
			return b, nil
		}
		if err := s.reserveFor(ctx, v, wanted{size: missing}); err != nil {
			return nil, err
		}
	}
}

func (r *room) isOpen(v *Reservation) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return v.open()
}

// settle ends a request: it has made the nodes with these paths and deleted those of the shares gone, or it has failed, or
// nobody knows. From then on the nodes that it deletes count by themselves, until they are known to be gone. All of that
// is one step, so that no waiter sees more taken than there is. b may be nil.
func (b *booking) settle(paths []string, err error, gone ...*share) {
	if b == nil {
		return
	}
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	for i, st := range b.shares {
		switch {
		case st == nil:
		case err == nil:
			b.r.countLocked(st, paths[i])
		case !Uncertain(err):
			b.repayLocked(st)
		}
	}
	if err == nil {
		for _, st := range gone {
			b.repayLocked(st)
		}
	}
	if b.credit != (amount{}) {
		b.r.used = b.r.used.plus(b.credit)
		b.credit = amount{}
		b.r.lookAgainLocked()
	}
	b.r.grantLocked()
}

// repayLocked ends a share. If its room goes back to a reservation, that of the nodes which the creates had taken over
// comes from there. st may be nil.
func (b *booking) repayLocked(st *share) {
	if st == nil || st.state == over {
		return
	}
	b.r.closeLocked(st)
	if st.of.open() {
		both := st.size.least(b.credit)
		st.of.free, b.credit = st.of.free.minus(both), b.credit.minus(both)
	}
}

// unmade returns the shares of nodes that a multi has made, and deleted again. paths are those that it has made.
func (b *booking) unmade(ops []any, paths []string) (all []*share) {
	made := make(map[string]*share)
	for i, op := range ops {
		switch op := op.(type) {
		case *zk.CreateRequest:
			if i < len(paths) {
				made[paths[i]] = b.shares[i]
			}
		case *zk.DeleteRequest:
			all = append(all, made[op.Path])
		}
	}
	return all
}

// resolve says what became of one of the creates whose reply was lost: the path of its node, or "" if there is none. It
// does nothing if that was known. b may be nil.
func (b *booking) resolve(i int, path string) {
	if b == nil {
		return
	}
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	st := b.shares[i]
	switch {
	case st == nil || st.state != unanswered:
		return
	case path != "":
		b.r.countLocked(st, path)
	default:
		b.r.closeLocked(st)
	}
	b.r.grantLocked()
}

// depart takes note that the node of one of the creates will be deleted as soon as it is there. b may be nil.
func (b *booking) depart(i int) {
	if b != nil {
		b.r.depart(b.shares[i])
	}
}

// stay undoes depart.
func (b *booking) stay(i int) {
	if b != nil {
		b.r.stay(b.shares[i])
	}
}

// sizeOfNew returns the room for a node that is to be created, by the path that is asked for.
func (s *Session) sizeOfNew(path string, sequential bool) amount {
	a := amountOf(s.outward(path))
	if sequential {
		a.bytes += sequenceDigits
	}
	return a
}

// sizesOfOps returns the room of each operation of a multi, which is zero unless it creates an ephemeral node, and the
// paths that the multi deletes.
func (s *Session) sizesOfOps(ops []any) (sizes []amount, deletes []string) {
	sizes = make([]amount, len(ops))
	for i, op := range ops {
		switch op := op.(type) {
		case *zk.CreateRequest:
			if mode := (CreateMode{flag: op.Flags}); mode.ephemeral() {
				sizes[i] = s.sizeOfNew(op.Path, mode.sequential())
			}
		case *zk.DeleteRequest:
			deletes = append(deletes, op.Path)
		}
	}
	return sizes, deletes
}
