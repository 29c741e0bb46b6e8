package quorum

import "time"

// A route carries the messages from one server to another in order, like TCP. If it has a delay they
// arrive late. If it is cut they arrive once it heals.
type route struct {
	delay   time.Duration
	cut     bool
	parcels []parcel // sent and not delivered, oldest first
	alarm   int      // counts the alarms that were set; all but the latest do nothing
}

// A parcel is a message on its way.
type parcel struct {
	message
	conn *quorumConn
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

// send sends a message.
func (st *State) send(b *quorumConn, from, to *Member, m message) {
	r := st.routes[from.index][to.index]
	r.parcels = append(r.parcels, parcel{m, b, time.Now()})
	if len(r.parcels) == 1 {
		st.schedule(r, to)
	}
}

// schedule delivers the oldest parcel when it is due, and then the others. Without a delay a parcel is
// delivered after the present event of the run loop, and never during it.
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
		r.parcels[0] = parcel{} // so that what it refers to can be freed
		r.parcels = r.parcels[1:]
		st.schedule(r, to)
		to.whenAwake(func() { to.take(p.conn, p.message) })
	})
}

// reroute changes the route from one server to another. The change applies to messages on their way, too.
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

// HealLinks ends every [State.CutLink].
func (st *State) HealLinks() {
	for _, from := range st.members {
		for _, to := range st.members {
			st.reroute(from, to, func(r *route) { r.cut = false })
		}
	}
	st.canvass()
}
