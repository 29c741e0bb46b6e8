package core

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// When a session ends, the servers delete its ephemeral nodes by one transaction, which lists their paths. A
// transaction with too many paths, or too long ones, has brought ensembles down. So each session has a room: the
// account of the ephemeral nodes that it owns and is about to own.
//
// A caller that wants nodes reserves the room for all of them first. If there is too little, it waits for its turn,
// first come, first served, while nodes are about to go that will make enough room. Places that are kept although
// nobody holds them are given up for it. The room of holders and of waiters is not on its way: they may wait for the
// caller, and then all would wait for ever.
//
// A create takes its room out of a reservation: a share, which lasts while the create is in flight or in doubt, and
// then while its node is there. When a share ends, its room goes back to the reservation, and to all once that has
// ended. So a MultiLock keeps what it has reserved to its end, whichever of its nodes come and go.

// amount is a part of the room.
type amount struct {
	nodes int
	bytes int // of the paths, as the transaction lists them
}

// amountOf returns the room of the node with a full path, the chroot included. The transaction has the length of each
// path in four bytes.
func amountOf(full string) amount { return amount{1, 4 + len(full)} }

// sequenceDigits is how long the number is that a server adds to the path of a sequential node.
const sequenceDigits = 10

func (a amount) plus(b amount) amount  { return amount{a.nodes + b.nodes, a.bytes + b.bytes} }
func (a amount) minus(b amount) amount { return amount{a.nodes - b.nodes, a.bytes - b.bytes} }
func (a amount) fits(b amount) bool    { return a.nodes <= b.nodes && a.bytes <= b.bytes }

// least returns the smaller number of nodes, and of bytes.
func (a amount) least(b amount) amount { return amount{min(a.nodes, b.nodes), min(a.bytes, b.bytes)} }

// beyond returns how much a is more than b, in nodes and in bytes.
func (a amount) beyond(b amount) amount {
	return amount{max(a.nodes-b.nodes, 0), max(a.bytes-b.bytes, 0)}
}

// room is the account of a session.
type room struct {
	limit amount

	// spare gives up places that are kept, the least recently used first, until they are of an amount. It reports whether
	// there was one. It is nil if no place was ever kept. One goroutine calls it at a time.
	spare   func(amount) bool
	judging sync.Mutex // held while spare is called; before mu

	mu      sync.Mutex
	used    amount                    // by shares, and the rest of reservations
	leaving amount                    // the part of used that will be free without anybody's help
	open    map[*Reservation]struct{} // those that have room and have not ended
	nodes   map[string]*share         // of nodes that are there, by path
	unknown int                       // shares of creates in flight or in doubt
	waiting []*asking                 // first come, first served
}

// share is the room of one node, from before its create is sent until the node is certain to be gone.
type share struct {
	size    amount
	of      *Reservation // gets the room back while it is open
	path    string       // of the node that is there
	state   shareState
	leaving bool // the node, or that of the create in flight, is about to be deleted
}

type shareState int8

const (
	unanswered shareState = iota // the create is in flight, or its reply was lost
	counted                      // the node is there
	over                         // it is gone, or never was
)

// Reservation is room that is set aside for creates. One goroutine uses it at a time. r.mu guards what changes.
type Reservation struct {
	r       *room
	over    <-chan struct{} // closed when its nodes are about to go: the context has ended for which it was made
	all     amount          // that was set aside
	free    amount          // the part of all that no share has
	leaving amount          // of its shares
	ended   bool
}

// asking is a call of reserve that waits.
type asking struct {
	ended   <-chan struct{} // closed when its context has ended: the call is about to withdraw
	v       *Reservation
	need    amount
	granted bool          // the room is set aside
	got     chan struct{} // closed then; nil if the call did not have to wait
	look    chan struct{} // receives when the room may not come any more
}

// isOver reports whether a context has ended, of which it takes the channel: its error can take the mutexes of a session.
func isOver(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// wanted is what a reservation is for.
type wanted struct {
	size amount
	// yield, if not nil, is called once if there is too little room, now or later. It starts to delete a node of the caller's.
	yield func()
	over  <-chan struct{} // closed when the nodes are about to go; nil: when the context ends
}

// reservation returns one without room yet. The end of ctx says that its nodes are about to go.
func (r *room) reservation(ctx context.Context) *Reservation {
	return &Reservation{r: r, over: ctx.Done()}
}

// reserve sets room aside. See reserveFor.
func (s *Session) reserve(ctx context.Context, w wanted) (*Reservation, error) {
	v := s.room.reservation(ctx)
	if w.over != nil {
		v.over = w.over
	}
	if err := s.reserveFor(ctx, v, w); err != nil {
		v.End() // it may have got its room just before
		return nil, err
	}
	return v, nil
}

// extend adds the room to an open reservation that it lacks for nodes of a size.
func (s *Session) extend(ctx context.Context, v *Reservation, w wanted) error {
	if w.size = s.room.lacking(v, w.size); w.size == (amount{}) {
		return nil
	}
	return s.reserveFor(ctx, v, w)
}

func (r *room) lacking(v *Reservation, size amount) amount {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !v.open() {
		return amount{}
	}
	return size.beyond(v.free)
}

// reserveFor adds room to a reservation. It waits while deletes are on their way that will make room, or until ctx or
// the session ends. If that room is not enough, it returns an error that matches ErrTooManyNodes.
func (s *Session) reserveFor(ctx context.Context, v *Reservation, w wanted) error {
	r := &s.room
	me := &asking{ended: ctx.Done(), v: v, need: w.size}
	err := r.ask(me)
	if err == nil && me.got != nil {
		err = r.judge(me, &w)
	}
	for err == nil && me.got != nil {
		select {
		case <-me.got:
			return nil
		case <-me.look:
			err = r.judge(me, &w)
		case <-ctx.Done():
			err = ctx.Err()
		case <-s.life.Done():
			err = s.Err()
		}
	}
	if err != nil {
		r.withdraw(me)
	}
	return err
}

// ask sets the room aside if there is enough, and nobody waits. Otherwise the caller waits from now on: me has got. What
// needs no room does not wait.
func (r *room) ask(me *asking) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !me.need.fits(r.limit):
		return r.refusalLocked(me)
	case me.need == (amount{}), len(r.waiting) == 0 && r.used.plus(me.need).fits(r.limit):
		r.setAsideLocked(me)
		return nil
	}
	me.got, me.look = make(chan struct{}), make(chan struct{}, 1)
	r.waiting = append(r.waiting, me)
	return nil
}

func (r *room) setAsideLocked(me *asking) {
	if me.granted = !me.v.ended; me.granted {
		r.used = r.used.plus(me.need)
		me.v.all, me.v.free = me.v.all.plus(me.need), me.v.free.plus(me.need)
		if r.open == nil {
			r.open = make(map[*Reservation]struct{})
		}
		r.open[me.v] = struct{}{}
	}
}

// judge returns nil if a caller that waits will get its room by what is on its way. It has places given up that are
// kept, all that are missing at once, and first what w has to yield. Others are judged only after it.
func (r *room) judge(me *asking, w *wanted) error {
	r.judging.Lock()
	defer r.judging.Unlock()
	for some := true; ; {
		missing, spare := r.missing(me)
		switch {
		case missing == amount{}:
			return nil
		case w.yield != nil:
			w.yield()
			w.yield = nil
		case some && spare != nil:
			some = spare(missing) // if there was none, the last one may have been given up just before, and is on its way
		default:
			return r.refuse(me)
		}
	}
}

// missing returns how much room a caller lacks after all that is on its way has come, and all that came before have
// what they need.
func (r *room) missing(me *asking) (amount, func(amount) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.Index(r.waiting, me)
	if at < 0 {
		return amount{}, nil // it has its room
	}
	later := r.used.minus(r.leaving)
	for v := range r.open {
		if isOver(v.over) {
			later = later.minus(v.all) // its caller gives up: see end for what stays
		}
	}
	for _, one := range r.waiting[:at+1] {
		if one == me || !isOver(one.ended) {
			later = later.plus(one.need)
		}
	}
	return later.beyond(r.limit), r.spare
}

// refuse ends the wait of a caller, unless it has got its room by now.
func (r *room) refuse(me *asking) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.dequeueLocked(me) {
		return nil
	}
	return r.refusalLocked(me)
}

func (r *room) refusalLocked(me *asking) error {
	if me.need.nodes > r.limit.nodes-r.used.nodes {
		return fmt.Errorf("%w: %d of at most %d nodes (WithMaxNodes) are taken or spoken for, and %d more are wanted",
			ErrTooManyNodes, r.used.nodes, r.limit.nodes, me.need.nodes)
	}
	return fmt.Errorf("%w: %d of at most %d bytes of paths (WithMaxNodeBytes) are taken or spoken for, and %d more are wanted",
		ErrTooManyNodes, r.used.bytes, r.limit.bytes, me.need.bytes)
}

// withdraw ends the wait of a caller, whether it has got its room by now or not.
func (r *room) withdraw(me *asking) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dequeueLocked(me)
	if me.granted && !me.v.ended {
		r.used = r.used.minus(me.need)
		me.v.all, me.v.free = me.v.all.minus(me.need), me.v.free.minus(me.need)
	}
	r.grantLocked()
}

func (r *room) dequeueLocked(me *asking) bool {
	at := slices.Index(r.waiting, me)
	if at < 0 {
		return false
	}
	r.waiting = slices.Delete(r.waiting, at, at+1)
	return true
}

// grantLocked sets room aside for those that wait, in their order.
func (r *room) grantLocked() {
	for len(r.waiting) > 0 {
		first := r.waiting[0]
		if !isOver(first.ended) {
			if !r.used.plus(first.need).fits(r.limit) {
				return
			}
			r.setAsideLocked(first)
			close(first.got)
		}
		r.waiting = slices.Delete(r.waiting, 0, 1)
	}
}

// lookAgainLocked has those that wait judged again, because less room is on its way than it was.
func (r *room) lookAgainLocked() {
	for _, one := range r.waiting {
		poke(one.look)
	}
}

func (v *Reservation) open() bool { return v != nil && !v.ended }

// End frees the rest of a reservation. The room of its nodes is free when they go. Further calls do nothing.
func (v *Reservation) End() {
	if v == nil {
		return
	}
	v.r.mu.Lock()
	defer v.r.mu.Unlock()
	if v.ended {
		return
	}
	v.ended = true
	delete(v.r.open, v)
	v.r.used = v.r.used.minus(v.free)
	v.r.leaving = v.r.leaving.plus(v.leaving)
	if isOver(v.over) && v.all != v.free.plus(v.leaving) {
		v.r.lookAgainLocked() // some nodes stay, at which missing took all of them for leaving
	}
	v.free, v.leaving = amount{}, amount{}
	v.r.grantLocked()
}

// leavingLocked returns the sum that has the share while its node is about to go.
func (r *room) leavingLocked(st *share) *amount {
	if st.of.open() {
		return &st.of.leaving
	}
	return &r.leaving
}

// depart takes note that a node is about to be deleted. Its room is then on its way. st may be nil.
func (r *room) depart(st *share) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if st == nil || st.leaving || st.state == over {
		return
	}
	st.leaving = true
	sum := r.leavingLocked(st)
	*sum = sum.plus(st.size)
}

// stay undoes depart: the server refuses to delete the node.
func (r *room) stay(st *share) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stayLocked(st) {
		r.lookAgainLocked()
	}
}

func (r *room) stayLocked(st *share) bool {
	if st == nil || !st.leaving {
		return false
	}
	st.leaving = false
	sum := r.leavingLocked(st)
	*sum = sum.minus(st.size)
	return true
}

// closeLocked ends a share.
func (r *room) closeLocked(st *share) {
	if st.state == over {
		return
	}
	r.stayLocked(st)
	if st.state == unanswered {
		r.unknown--
	}
	if r.nodes[st.path] == st {
		delete(r.nodes, st.path)
	}
	st.state = over
	if st.of.open() {
		st.of.free = st.of.free.plus(st.size)
		return
	}
	r.used = r.used.minus(st.size)
}

// countLocked counts the node of a share at its path. A node that was counted there before is gone.
func (r *room) countLocked(st *share, path string) {
	if old := r.nodes[path]; old != nil && old != st {
		r.closeLocked(old)
	}
	if st.state == unanswered {
		r.unknown--
	}
	st.state, st.path = counted, path
	if r.nodes == nil {
		r.nodes = make(map[string]*share)
	}
	r.nodes[path] = st
}

// found counts a node of a size, unless it is counted. It takes the room out of v, which may be nil. If that has too
// little, the node counts all the same.
func (r *room) found(path string, size amount, v *Reservation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.nodes[path] != nil {
		return
	}
	st := &share{size: size, state: counted}
	if v.open() && size.fits(v.free) {
		v.free = v.free.minus(size)
		st.of = v
	} else {
		r.used = r.used.plus(size)
		r.lookAgainLocked()
	}
	r.countLocked(st, path)
}

// noted returns the share of the node that is counted at a path, which tells it from earlier and later nodes
// there, or nil if there is none. Call it before a delete is sent, and pass the result to deleted.
func (r *room) noted(path string) *share {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.nodes[path]
}

// deleted takes note that a node is gone. It leaves a node that was created at the same path since then, because
// replies reach the goroutines that wait for them in any order. st may be nil.
func (r *room) deleted(st *share) {
	if st == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closeLocked(st)
	r.grantLocked()
}

// has reports whether the session certainly has a node. The nodes of all held locks are counted.
func (r *room) has() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.nodes) > 0
}

// any reports whether the session has a node, or may have one.
func (r *room) any() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unknown > 0 || len(r.nodes) > 0
}
