package simulation

import (
	"time"

	"github.com/turnstile-go/turnstile/zktest"
)

// Faults of servers and between them. With one server alone most of them do nothing.

// well reports whether the servers carry out an operator's request at once.
func (f *faults) well() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, led := f.w.server.Leader()
	return f.sick == 0 && led
}

// trouble strikes the servers, and heals them after a while.
func (f *faults) trouble(d time.Duration, begin, undo func()) {
	f.mu.Lock()
	f.sick++
	f.mu.Unlock()
	begin()
	f.after(d, func() {
		undo()
		f.mu.Lock()
		f.sick--
		f.mu.Unlock()
	})
}

func (f *faults) healServers() {
	srv := f.w.server
	srv.HealLinks()
	srv.SetCommitDelay(0)
	srv.Throttle(nil)
	srv.SetEagerACL(false)
	for i := range f.w.plan.servers {
		srv.ReleaseServer(i)
		_ = srv.StartServer(i)
		srv.SetSessionTimeoutsOf(i, 2*f.w.plan.tick, time.Hour)
		for j := range f.w.plan.servers {
			if i != j {
				srv.DelayLink(i, j, 0)
			}
		}
	}
}

// upTo draws a duration of whole milliseconds.
func (f *faults) upTo(d time.Duration) time.Duration {
	return time.Duration(f.rng.Int64N(int64(d/time.Millisecond))) * time.Millisecond
}

func (f *faults) servers() int { return f.w.plan.servers }

// isolate cuts a server off from all others, both ways.
func (f *faults) isolate(i int) {
	for j := range f.servers() {
		if j != i {
			f.w.server.CutLink(i, j)
			f.w.server.CutLink(j, i)
		}
	}
}

// long is about as long as sessions live, or as it takes servers to give each other up.
func (f *faults) long() time.Duration { return 500*time.Millisecond + f.upTo(14*time.Second) }

func (f *faults) cutServer() {
	if f.servers() == 1 {
		return
	}
	i, d := f.rng.IntN(f.servers()), f.long()
	f.log("server %d is cut off for %v", i, d)
	f.trouble(d, func() { f.isolate(i) }, f.w.server.HealLinks)
}

func (f *faults) cutOneWay() {
	if f.servers() == 1 {
		return
	}
	i := f.rng.IntN(f.servers())
	j := (i + 1 + f.rng.IntN(f.servers()-1)) % f.servers()
	d := f.long()
	f.log("nothing of server %d arrives at %d for %v", i, j, d)
	f.trouble(d, func() { f.w.server.CutLink(i, j) }, f.w.server.HealLinks)
}

// A scene has a holder at a follower, and its rivals at other servers. There a wrong lease clock
// shows.
type scene struct {
	m      *member
	at     int // the holder's server
	leader int
}

// scene moves a holder to a follower, and all other clients away from it.
func (f *faults) scene() (s scene, ok bool) {
	for range 10 { // somebody holds something most of the time
		if s.m = f.w.checks.anyHolder(f.rng); s.m != nil && f.well() {
			break
		}
		f.w.sleep(faultSlot, 200*time.Millisecond)
	}
	leader, led := f.w.server.Leader()
	if s.m == nil || !led || f.servers() == 1 || !f.well() {
		return s, false
	}
	s.leader = leader
	s.at = (leader + 1 + f.rng.IntN(f.servers()-1)) % f.servers()
	for _, m := range f.w.members {
		where, there := f.w.server.ServerOf(m.sessionNow())
		switch {
		case m == s.m:
			m.keepFor(2*m.timeout + 8*time.Second)
			m.end.change(func() { m.end.pinned = s.at })
			if there && where != s.at {
				m.end.cut()
			}
		case there && where == s.at:
			m.end.change(func() { m.end.pinned = leader })
			m.end.cut()
		}
	}
	f.w.sleep(faultSlot, time.Duration(200+f.rng.IntN(3000))*time.Millisecond)
	where, there := f.w.server.ServerOf(s.m.sessionNow())
	if !there || where != s.at {
		f.clear(s)
		return s, false
	}
	return s, true
}

// clear heals all after a scene.
func (f *faults) clear(s scene) {
	f.w.server.HealLinks()
	for _, m := range f.w.members {
		m.end.change(func() { m.end.pinned = -1 })
	}
	s.m.end.heal()
}

// aim waits until the leader would expire the session soon, which is just before the list that puts
// that off. It waits for three seconds at most.
func (f *faults) aim(s scene) {
	id := s.m.sessionNow()
	within := s.m.timeout - f.upTo(900*time.Millisecond)
	if f.rng.IntN(4) > 0 { // just before the latest moment at which it can come
		within = s.m.timeout - 700*time.Millisecond - f.upTo(160*time.Millisecond)
	}
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
		if at, ok := f.w.server.Expiry(id); ok && time.Until(at) < within {
			return
		}
		f.w.sleep(faultSlot, 10*time.Millisecond)
	}
}

// nudge has the holder's session send the requests of a proof, as its locks do at times: perhaps a
// sync, and a write.
func (f *faults) nudge(s scene) {
	ctx, cancel := within(2 * time.Second)
	defer cancel()
	mgr, err := s.m.current(ctx)
	if err != nil {
		return
	}
	live, err := mgr.Session(ctx)
	if err != nil {
		return
	}
	switch f.rng.IntN(6) {
	case 0:
	case 1:
		_ = live.Sync(ctx, "/")
	default: // as the formula has it
		_ = live.Sync(ctx, "/")
		f.w.sleep(faultSlot, 101*time.Millisecond)
	}
	_ = live.Delete(ctx, "/none", -1) // it is not there: a quorum says so
}

// cutHolder cuts the server of a holder off from the others just before it answers the leader's next
// ping.
func (f *faults) cutHolder() {
	s, ok := f.scene()
	if !ok {
		return
	}
	f.aim(s)
	if f.rng.IntN(6) > 0 {
		f.nudge(s)
	}
	f.log("server %d, which %s is at, is cut off", s.at, s.m.name)
	f.trouble(s.m.timeout+5*time.Second, func() { f.isolate(s.at) }, func() { f.clear(s) })
}

// lateThenCut delays one request or its answer, and then cuts off the server that answered.
func (f *faults) lateThenCut() {
	s, ok := f.scene()
	if !ok {
		return
	}
	late := (s.m.timeout/8 + f.upTo(s.m.timeout/4)).Truncate(time.Millisecond)
	dir := []zktest.Direction{zktest.ToClient, zktest.ToServer}[f.rng.IntN(2)]
	f.log("nothing of %s goes %v for %v, then its server %d is cut off", s.m.name, dir, late, s.at)
	s.m.end.blackhole(dir)
	f.w.sleep(faultSlot, late)
	f.aim(s)
	s.m.end.change(func() { s.m.end.black = 0 })
	if dir == zktest.ToServer {
		f.nudge(s)
	} else {
		f.w.sleep(faultSlot, time.Duration(f.rng.IntN(150))*time.Millisecond)
	}
	f.trouble(s.m.timeout+5*time.Second, func() { f.isolate(s.at) }, func() { f.clear(s) })
}

// stallThenCut stops the leader, lets it go on, and cuts it off from the holder's server within
// milliseconds, perhaps before it has sent the overdue pings. Its frames still arrive for a while.
func (f *faults) stallThenCut() {
	s, ok := f.scene()
	if !ok {
		return
	}
	still, lag := 500*time.Millisecond+f.upTo(2500*time.Millisecond), f.upTo(95*time.Millisecond)+2*time.Millisecond
	f.log("leader %d stands still for %v, then %s at %d is cut off", s.leader, still, s.m.name, s.at)
	f.w.server.SetPingLag(lag)
	f.w.server.HoldServer(s.leader)
	f.w.sleep(faultSlot, still)
	f.w.server.ReleaseServer(s.leader)
	if f.rng.IntN(3) > 0 {
		f.nudge(s)
	} else {
		f.w.sleep(faultSlot, f.upTo(lag))
	}
	f.trouble(s.m.timeout+5*time.Second, func() {
		for j := range f.servers() {
			if j != s.at {
				f.w.server.CutLink(s.at, j)
			}
		}
		f.after(f.upTo(60*time.Millisecond), func() { f.isolate(s.at) })
	}, func() { f.clear(s) })
}

// depose cuts the leader off from the others, with a holder whose rivals are at other servers.
func (f *faults) depose() {
	s, ok := f.scene()
	if !ok {
		return
	}
	s.m.end.change(func() { s.m.end.pinned = s.leader })
	for _, m := range f.w.members {
		if where, there := f.w.server.ServerOf(m.sessionNow()); m != s.m && there && where == s.leader {
			m.end.change(func() { m.end.pinned = s.at })
			m.end.cut()
		}
	}
	early := f.rng.IntN(2) == 0
	if early {
		s.m.end.cut()
	}
	f.w.sleep(faultSlot, time.Duration(50+f.rng.IntN(2000))*time.Millisecond)
	f.log("leader %d is cut off with %s", s.leader, s.m.name)
	f.trouble(s.m.timeout+12*time.Second, func() { f.isolate(s.leader) }, func() { f.clear(s) })
	if f.rng.IntN(2) == 0 { // they have another leader sooner than the old one gives up
		f.log("the others are restarted")
		for i := range f.servers() {
			if i != s.leader {
				f.w.server.StopServer(i)
			}
		}
		for i := range f.servers() {
			_ = f.w.server.StartServer(i)
		}
	}
	if !early || f.rng.IntN(2) == 0 {
		f.after(f.upTo(4*time.Second), s.m.end.cut)
	}
}

func (f *faults) standstill() {
	i, d := f.rng.IntN(f.servers()), f.upTo(4*time.Second)
	if f.servers() == 1 {
		return
	}
	f.log("server %d stands still for %v", i, d)
	f.trouble(d, func() { f.w.server.HoldServer(i) }, func() { f.w.server.ReleaseServer(i) })
}

func (f *faults) stopServer() {
	if f.servers() == 1 {
		return
	}
	i, d := f.rng.IntN(f.servers()), f.upTo(6*time.Second)
	f.log("server %d is down for %v", i, d)
	f.trouble(d, func() { f.w.server.StopServer(i) }, func() { _ = f.w.server.StartServer(i) })
}

func (f *faults) slowDisks() {
	d := f.upTo(1500 * time.Millisecond)
	f.log("disks take %v", d)
	slow := f.upTo(8 * time.Second)
	f.trouble(slow+2*d, func() { // what is on its way to the disk then holds up what follows
		f.w.server.SetCommitDelay(d)
		f.after(slow, func() { f.w.server.SetCommitDelay(0) })
	}, func() {})
}

func (f *faults) slowLinks() {
	if f.servers() == 1 {
		return
	}
	d := f.upTo(200 * time.Millisecond)
	f.log("links between servers take %v", d)
	set := func(d time.Duration) {
		for i := range f.servers() {
			for j := range f.servers() {
				if i != j {
					f.w.server.DelayLink(i, j, d)
				}
			}
		}
	}
	f.trouble(f.upTo(8*time.Second), func() { set(d) }, func() { set(0) })
}

// shortTimeouts has a session move to another server that grants a shorter timeout.
func (f *faults) shortTimeouts() {
	s, ok := f.scene()
	if !ok {
		return
	}
	f.log("server %d grants %s two ticks at most", s.at, s.m.name)
	f.w.server.SetSessionTimeoutsOf(s.at, 2*f.w.plan.tick, 2*f.w.plan.tick)
	f.w.shortened.Store(true)
	f.after(12*time.Second, func() { f.w.server.SetSessionTimeoutsOf(s.at, 2*f.w.plan.tick, time.Hour) })
	s.m.end.cut()
	f.w.sleep(faultSlot, time.Second)
	if f.rng.IntN(2) == 0 {
		f.trouble(s.m.timeout+5*time.Second, func() { f.isolate(s.at) }, func() { f.clear(s) })
		return
	}
	s.m.end.setRefuse(true)
	s.m.end.cut()
	f.after(s.m.timeout+2*time.Second, func() { f.clear(s) })
}

// throttled has a server that is cut off refuse requests by itself.
func (f *faults) throttled() {
	s, ok := f.scene()
	if !ok {
		return
	}
	f.log("server %d throttles %s and is cut off", s.at, s.m.name)
	id := s.m.sessionNow()
	f.w.server.Throttle(func(r zktest.Request) bool { return r.Session == id })
	f.trouble(s.m.timeout+5*time.Second, func() { f.isolate(s.at) }, func() {
		f.w.server.Throttle(nil)
		f.clear(s)
	})
}
