package quorum

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
func (st *State) connected(a, b *Member) bool {
	return !st.routes[a.index][b.index].cut && !st.routes[b.index][a.index].cut
}

// send puts a message on its way.
func (st *State) send(b *bond, from, to *Member, m message) {
	r := st.routes[from.index][to.index]
	r.parcels = append(r.parcels, parcel{m, b, time.Now()})
	if len(r.parcels) == 1 {
		st.schedule(r, to)
	}
}

// schedule has the oldest parcel delivered when it is due, and then the others.
// Without a delay that is as soon as the run loop has finished what it is doing:
// a message is never processed in the middle of something else.
func (st *State) schedule(r *route, to *Member) {
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
func (st *State) reroute(from, to *Member, change func(*route)) {
	r := st.routes[from.index][to.index]
	change(r)
	st.schedule(r, to)
}

// CutLink cuts the route from one server to another.
func (st *State) CutLink(from, to int) {
	st.reroute(st.members[from], st.members[to], func(r *route) { r.cut = true })
}

// DelayLink makes every message on the route arrive d after it was sent.
func (st *State) DelayLink(from, to int, d time.Duration) {
	st.reroute(st.members[from], st.members[to], func(r *route) { r.delay = d })
}

// HealLinks ends every cutLink.
func (st *State) HealLinks() {
	for _, from := range st.members {
		for _, to := range st.members {
			st.reroute(from, to, func(r *route) { r.cut = false })
		}
	}
	st.canvass()
}
