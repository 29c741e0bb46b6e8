package room

import "context"

// Op is what an operation of a request does to the account.
type Op struct {
	Creates Size   // the room of the ephemeral node that it creates; zero if it creates none
	Deletes string // the path of the node that it deletes, or ""
}

// Booking is the room of one request that creates nodes, in flight or in doubt. A nil Booking is that of a
// request which needs no room.
type Booking struct {
	a      *Account
	parts  []part
	credit Size // the room of nodes that the request deletes, which its creates take over
}

// part is an operation of a request.
type part struct {
	creates *Node  // nil if it creates no ephemeral node
	deletes string // a path, or ""
	deleted *Node  // nil if it deletes nothing that is counted
}

// Book takes the room of a request out of v, which gets more if it has too little left. If v is nil or has
// ended, Book makes a reservation for this request alone. It fails as Reserve does.
func (a *Account) Book(ctx context.Context, v *Reservation, ops ...Op) (*Booking, error) {
	for {
		if !a.isOpen(v) {
			v = &Reservation{a: a, over: ctx.Done()}
			defer v.End()
		}
		b, need := a.book(v, ops)
		if b != nil {
			return b, nil
		}
		if err := a.add(ctx, v, need, nil); err != nil {
			return nil, err
		}
	}
}

func (a *Account) isOpen(v *Reservation) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return v.open()
}

// book takes the room of a request out of a reservation, which is open. If that has too little left, it
// returns nil and how much it needs.
func (a *Account) book(v *Reservation, ops []Op) (_ *Booking, need Size) {
	var creates Size
	var deletes []string
	for _, op := range ops {
		creates = creates.plus(op.Creates)
		if op.Deletes != "" {
			deletes = append(deletes, op.Deletes)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	net := creates.beyond(a.creditLocked(deletes))
	if !net.fits(v.free) {
		return nil, net
	}
	v.free = v.free.minus(net)
	b := &Booking{a: a, credit: creates.minus(net), parts: make([]part, len(ops))}
	for i, op := range ops {
		b.parts[i].deletes = op.Deletes
		if op.Creates != (Size{}) {
			b.parts[i].creates = &Node{size: op.Creates}
			v.addLocked(b.parts[i].creates)
			a.unknown++
		}
	}
	return b, Size{}
}

// Sending takes note of the nodes that the request deletes. Call it just before the request is sent.
func (b *Booking) Sending() {
	b.a.mu.Lock()
	defer b.a.mu.Unlock()
	for i := range b.parts {
		b.parts[i].deleted = b.a.nodes[b.parts[i].deletes]
	}
}

// Deleted returns the nodes that the request deletes, by their paths.
func (b *Booking) Deleted() map[string]*Node {
	all := make(map[string]*Node)
	for _, p := range b.parts {
		if p.deleted != nil {
			all[p.deletes] = p.deleted
		}
	}
	return all
}

// Made ends a request that was carried out. paths are those of the nodes that it has made, by operation.
func (b *Booking) Made(paths []string) {
	b.end(func() {
		for i, p := range b.parts {
			if p.creates != nil {
				b.a.countLocked(p.creates, paths[i])
			}
		}
		for i, p := range b.parts {
			b.repayLocked(p.deleted)
			for before := i - 1; p.deletes != "" && before >= 0; before-- {
				if paths[before] == p.deletes { // the request itself has made it
					b.repayLocked(b.parts[before].creates)
				}
			}
		}
	})
}

// Failed ends a request that has made no node, and has deleted none.
func (b *Booking) Failed() {
	b.end(func() {
		for _, p := range b.parts {
			b.repayLocked(p.creates)
		}
	})
}

// Lost ends a request of which nobody knows whether it was carried out: see Resolve.
func (b *Booking) Lost() { b.end(func() {}) }

// end ends a request. From then on the nodes that it deletes count by themselves, until they are known to be
// gone. All of that is one step, so that no waiter sees more taken than there is.
func (b *Booking) end(outcomeLocked func()) {
	if b == nil {
		return
	}
	b.a.mu.Lock()
	defer b.a.mu.Unlock()
	outcomeLocked()
	if b.credit != (Size{}) {
		b.a.used = b.a.used.plus(b.credit)
		b.credit = Size{}
		b.a.lookAgainLocked()
	}
	b.a.grantLocked()
}

// repayLocked takes note that a node is gone, or never was. If its room goes back to a reservation, that of
// the nodes which the creates had taken over comes from there. n may be nil.
func (b *Booking) repayLocked(n *Node) {
	if n == nil || n.state == over {
		return
	}
	b.a.closeLocked(n)
	if n.of.open() {
		both := n.size.least(b.credit)
		n.of.free, b.credit = n.of.free.minus(both), b.credit.minus(both)
	}
}

// Resolve says what became of one of the creates whose reply was lost: the path of its node, or "" if there
// is none. It does nothing if that was known.
func (b *Booking) Resolve(i int, path string) {
	if b == nil {
		return
	}
	b.a.mu.Lock()
	defer b.a.mu.Unlock()
	n := b.parts[i].creates
	switch {
	case n == nil || n.state != unanswered:
		return
	case path != "":
		b.a.countLocked(n, path)
	default:
		b.a.closeLocked(n)
	}
	b.a.grantLocked()
}

// Depart takes note that the node of one of the creates will be deleted as soon as it is there.
func (b *Booking) Depart(i int) {
	if b != nil {
		b.a.Depart(b.parts[i].creates)
	}
}

// Stay undoes Depart.
func (b *Booking) Stay(i int) {
	if b != nil {
		b.a.Stay(b.parts[i].creates)
	}
}
