package room

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
)

// roomTest is the account of a session whose requests the test answers.
type roomTest struct {
	t *testing.T
	*Account
	die          context.CancelCauseFunc // ends the session
	bookings     []*Booking
	reservations []*Reservation
	renews       bool // a request deletes a node: until the answer shows that it is gone, it counts beside the new one
}

func newRoomTest(t *testing.T, nodes, bytes int) *roomTest {
	life, die := context.WithCancelCause(context.Background())
	t.Cleanup(func() { die(nil) })
	return &roomTest{t: t, Account: New(life, Size{nodes, bytes}), die: die}
}

// plenty is more than the paths of any of these tests have.
const plenty = 1 << 20

// size returns the room of n nodes whose paths are a letter and a digit behind a slash.
func (rt *roomTest) size(n int) Size { return Size{n, n * (4 + len("/a0"))} }

// want asks for the room of n such nodes.
func (rt *roomTest) want(n int) Want { return rt.wantOr(n, nil) }
func (rt *roomTest) wantOr(n int, yield func()) Want {
	return Want{Nodes: n, Bytes: rt.size(n).Bytes, Yield: yield}
}

func (rt *roomTest) reserved(w Want) *Reservation {
	rt.t.Helper()
	v, err := rt.Reserve(rt.t.Context(), w)
	if err != nil {
		rt.t.Fatal(err)
	}
	rt.reservations = append(rt.reservations, v)
	return v
}

// begin reserves in a goroutine.
func (rt *roomTest) begin(ctx context.Context, w Want) chan error {
	done := make(chan error, 1)
	go func() {
		v, err := rt.Reserve(ctx, w)
		if err == nil {
			rt.mu.Lock()
			rt.reservations = append(rt.reservations, v)
			rt.mu.Unlock()
		}
		done <- err
	}()
	synctest.Wait()
	return done
}

func (rt *roomTest) waits(done chan error) {
	rt.t.Helper()
	synctest.Wait()
	select {
	case err := <-done:
		rt.t.Fatalf("it does not wait: %v", err)
	default:
	}
	rt.check()
}

func (rt *roomTest) ends(done chan error, want error) {
	rt.t.Helper()
	synctest.Wait()
	select {
	case err := <-done:
		if !errors.Is(err, want) {
			rt.t.Fatalf("%v, want %v", err, want)
		}
	default:
		rt.t.Fatalf("it waits, want %v", want)
	}
	rt.check()
}

// booked sends a create of each path, without an answer.
func (rt *roomTest) booked(v *Reservation, deletes []string, paths ...string) *Booking {
	rt.t.Helper()
	ops := make([]Op, max(len(paths), len(deletes)))
	for i, path := range paths {
		ops[i].Creates = SizeOf(path, false)
	}
	for i, path := range deletes {
		ops[i].Deletes = path
	}
	b, err := rt.Book(rt.t.Context(), v, ops...)
	if err != nil {
		rt.t.Fatal(err)
	}
	rt.bookings = append(rt.bookings, b)
	rt.renews = rt.renews || b.credit != (Size{})
	return b
}

// made creates nodes.
func (rt *roomTest) made(paths ...string) {
	rt.t.Helper()
	for _, path := range paths {
		rt.booked(nil, nil, path).Made([]string{path})
	}
	rt.check()
}

func (rt *roomTest) gone(paths ...string) {
	for _, path := range paths {
		rt.Gone(rt.At(path))
	}
}

func (rt *roomTest) leave(paths ...string) {
	for _, path := range paths {
		rt.Depart(rt.At(path))
	}
}

// check compares the account with its parts.
func (rt *roomTest) check() {
	rt.t.Helper()
	r := rt.Account
	r.mu.Lock()
	defer r.mu.Unlock()
	var used, leaving Size
	seen, unknown := make(map[*Node]bool), 0
	add := func(n *Node) {
		if n == nil || n.state == over || seen[n] {
			return
		}
		seen[n] = true
		if n.of != nil && (n.of.ended || !slices.Contains(n.of.nodes, n)) {
			rt.t.Error("a node keeps a reservation that has ended or does not have it")
		}
		used = used.plus(n.size)
		if n.leaving && !n.of.open() {
			leaving = leaving.plus(n.size)
		}
		if n.state == unanswered {
			unknown++
		}
	}
	for _, n := range r.nodes {
		add(n)
	}
	for _, b := range rt.bookings {
		for _, p := range b.parts {
			add(p.creates)
		}
		used = used.minus(b.credit)
	}
	for _, v := range rt.reservations {
		if v.ended && (v.free != (Size{}) || len(v.nodes) > 0) {
			rt.t.Errorf("a reservation that has ended has %v, and %d nodes", v.free, len(v.nodes))
		}
		if slices.ContainsFunc(v.nodes, func(n *Node) bool { return n.state == over }) {
			rt.t.Error("a reservation has a node that is gone")
		}
		used = used.plus(v.free)
	}
	if used != r.used || leaving != r.leaving || unknown != r.unknown {
		rt.t.Errorf("used %v, leaving %v, %d unknown; its parts make %v, %v, %d", r.used, r.leaving, r.unknown, used, leaving, unknown)
	}
	if !r.used.fits(r.limit) && !rt.renews {
		rt.t.Errorf("used %v of %v", r.used, r.limit)
	}
}
