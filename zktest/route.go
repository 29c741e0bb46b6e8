package zktest

import "time"

// A route carries the messages from one server to another, in order, as TCP
// does. On a slow route they arrive late; on one that is cut, they arrive once it
// is healed.
type route struct {
	delay   time.Duration
	cut     bool
	parcels []parcel // sent and not delivered, oldest first
	alarm   int      // the latest alarm that was set; earlier ones do nothing
}

// A parcel is a message on its way.
type parcel struct {
	message
	bond *bond
	sent time.Time
}

func newRoutes(servers int) [][]*route {
	all := make([][]*route, servers)
	for i := range all {
		for range servers {
			all[i] = append(all[i], new(route))
		}
	}
	return all
}

// connected reports whether two servers can reach each other in both directions.
func (st *state) connected(a, b *member) bool {
	return !st.routes[a.index][b.index].cut && !st.routes[b.index][a.index].cut
}

// send puts a message on its way.
func (st *state) send(b *bond, from, to *member, m message) {
	r := st.routes[from.index][to.index]
	r.parcels = append(r.parcels, parcel{m, b, time.Now()})
	if len(r.parcels) == 1 {
		st.schedule(r, to)
	}
}

// schedule has the oldest parcel delivered when it is due, and then the others.
// Without a delay that is as soon as the run loop has finished what it is doing:
// a message is never processed in the middle of something else.
func (st *state) schedule(r *route, to *member) {
	r.alarm++
	if r.cut || len(r.parcels) == 0 {
		return
	}
	alarm := r.alarm
	st.agenda.add(r.parcels[0].sent.Add(r.delay), func() {
		if r.alarm != alarm {
			return
		}
		p := r.parcels[0]
		r.parcels[0] = parcel{} // let go of what it refers to
		r.parcels = r.parcels[1:]
		st.schedule(r, to)
		to.whenAwake(func() { to.take(p.bond, p.message) })
	})
}

// reroute changes the route between two servers. That affects the messages on
// their way, too.
func (st *state) reroute(from, to *member, change func(*route)) {
	r := st.routes[from.index][to.index]
	change(r)
	st.schedule(r, to)
}
