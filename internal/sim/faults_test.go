package sim

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/zktest"
)

// faults is the schedule of faults.
type faults struct {
	w       *world
	rng     *rand.Rand
	armed   []*zktest.Fault
	strikes map[string]int
	later   sync.WaitGroup
	over    chan struct{}

	mu   sync.Mutex
	sick int // faults of the servers that are under way
}

// fault is one kind of trouble.
type fault struct {
	name string
	do   func(*faults)
}

var allFaults = []fault{
	{"cut before", (*faults).cutBefore},
	{"cut after commit", (*faults).cutAfter},
	{"hold request", (*faults).holdRequest},
	{"hold reply", (*faults).holdReply},
	{"blackhole", (*faults).blackhole},
	{"blackhole for long", (*faults).longBlackhole},
	{"disconnect all", (*faults).disconnectAll},
	{"disconnect", (*faults).disconnect},
	{"refuse", (*faults).refuse},
	{"refuse all", (*faults).refuseAll},
	{"expire", (*faults).expire},
	{"delete", (*faults).deleteAny},
	{"touch", (*faults).touch},
	{"reap", (*faults).reap},
	{"lag", (*faults).lag},
	{"delay", (*faults).delay},
	{"late reply, then silence", (*faults).lateReply},
	{"amnesia", (*faults).amnesia},
	{"away while things happen", (*faults).away},
	{"lost, and the next create too", (*faults).lostTwice},
	{"reply lost, next server behind", (*faults).behind},
	{"waiter deleted before its watch is set", (*faults).unwatched},
	{"server cut off", (*faults).cutServer},
	{"server cut off in one direction", (*faults).cutOneWay},
	{"server stands still", (*faults).standstill},
	{"server stopped", (*faults).stopServer},
	{"slow disks", (*faults).slowDisks},
	{"slow links", (*faults).slowLinks},
}

// scenes are the faults of an ensemble that would show a wrong lease clock. Each needs time, a
// holder and its rivals, so scenes have a share of the schedule of their own.
var scenes = []fault{
	{"server of the holder cut off", (*faults).cutHolder},
	{"server of the holder cut off", (*faults).cutHolder},
	{"late answer, then its server cut off", (*faults).lateThenCut},
	{"leader stands still, then cut off from the holder's server", (*faults).stallThenCut},
	{"leader deposed with the holder", (*faults).depose},
	{"shorter timeouts at one server", (*faults).shortTimeouts},
	{"throttled by a server that is cut off", (*faults).throttled},
}

func newFaults(w *world) *faults {
	return &faults{
		w: w, rng: rand.New(rand.NewPCG(w.seed, 3)),
		strikes: make(map[string]int), over: make(chan struct{}),
	}
}

// run lets faults strike for a while, and heals. Each seed has only some kinds of
// faults, so that each kind occurs in many mixtures.
func (f *faults) run(d time.Duration) {
	var mine []fault
	for _, one := range allFaults {
		if f.rng.IntN(3) > 0 {
			mine = append(mine, one)
		}
	}
	gap := []time.Duration{300, 1000, 3000}[f.rng.IntN(3)] * time.Millisecond
	for end := time.Now().Add(d); time.Now().Before(end); {
		f.w.sleep(faultSlot, time.Duration(f.rng.Int64N(int64(2*gap))))
		if len(mine) == 0 {
			continue
		}
		one := mine[f.rng.IntN(len(mine))]
		if f.w.plan.servers > 1 && f.rng.IntN(4) == 0 {
			one = scenes[f.rng.IntN(len(scenes))]
		}
		f.strikes[one.name]++
		one.do(f)
	}
	f.heal()
}

// heal ends all faults, also those that were to end later.
func (f *faults) heal() {
	close(f.over)
	f.later.Wait()
	for _, a := range f.armed {
		a.Release()
	}
	for _, m := range f.w.members {
		m.end.heal()
	}
	f.w.server.Heal()
	f.w.server.Refuse(false)
	f.w.server.Delay(0)
	f.healServers()
	for _, id := range f.w.server.Sessions() {
		_ = f.w.server.Lag(id, 0) // it may be over
	}
}

func (f *faults) log(format string, args ...any) { f.w.trace.add("fault", format, args...) }

// after calls g later, in a slot of the faults, or at the healing.
func (f *faults) after(d time.Duration, g func()) {
	now := time.Now()
	at := slot(now.Add(d), faultSlot, mix(f.w.seed, "after", now))
	f.later.Go(func() {
		t := time.NewTimer(time.Until(at))
		defer t.Stop()
		select {
		case <-t.C:
			if f.w.in() == chaos {
				g()
			}
		case <-f.over:
		}
	})
}

func (f *faults) member() *member { return f.w.members[f.rng.IntN(len(f.w.members))] }

// victim draws a manager, more often one that holds a lock.
func (f *faults) victim() *member {
	if f.rng.IntN(3) > 0 {
		if m := f.w.checks.anyHolder(f.rng); m != nil {
			return m
		}
	}
	return f.member()
}

// ops are the requests to hit. The more important ones are there more often.
var ops = []zktest.Op{
	zktest.OpCreate, zktest.OpCreate, zktest.OpCreate, zktest.OpDelete, zktest.OpDelete,
	zktest.OpGetData, zktest.OpSetWatches, zktest.OpSetWatches, zktest.OpGetChildren2, zktest.OpSync, zktest.OpExists,
	zktest.OpConnect, zktest.OpCreateContainer, zktest.OpClose, zktest.OpMulti, zktest.OpPing,
}

// match draws requests to hit: of a kind, and now and then of one manager alone.
func (f *faults) match() (zktest.Match, string) {
	op := ops[f.rng.IntN(len(ops))]
	if f.rng.IntN(2) == 0 {
		return zktest.Any(op), op.String()
	}
	m := f.member()
	return func(r zktest.Request) bool {
		return r.Op == op && r.Session != 0 && r.Session == m.sessionNow()
	}, fmt.Sprintf("%s of %s", op, m.name)
}

func (f *faults) cutBefore() {
	m, what := f.match()
	f.log("cut before the next %s", what)
	f.arm(f.w.server.CutBefore(m), 10*time.Second)
}

func (f *faults) cutAfter() {
	m, what := f.match()
	f.log("cut after the next %s", what)
	f.arm(f.w.server.CutAfterCommit(m), 10*time.Second)
}

func (f *faults) holdRequest() {
	m, what := f.match()
	d := time.Duration(f.rng.IntN(4000)) * time.Millisecond
	f.log("hold the next %s for at most %v", what, d)
	f.arm(f.w.server.HoldRequest(m), d)
}

func (f *faults) holdReply() {
	m, what := f.match()
	d := time.Duration(f.rng.IntN(4000)) * time.Millisecond
	f.log("hold the reply to the next %s for at most %v", what, d)
	f.arm(f.w.server.HoldReply(m), d)
}

func (f *faults) arm(one *zktest.Fault, d time.Duration) {
	f.armed = append(f.armed, one)
	f.after(d, one.Release)
}

// direction draws one.
func (f *faults) direction() zktest.Direction {
	return []zktest.Direction{zktest.ToServer, zktest.ToClient, zktest.Both}[f.rng.IntN(3)]
}

func (f *faults) blackhole() {
	f.blackholeFor(time.Duration(f.rng.Int64N(int64(4 * time.Second))))
}

func (f *faults) longBlackhole() {
	f.blackholeFor(4*time.Second + time.Duration(f.rng.Int64N(int64(8*time.Second))))
}

func (f *faults) blackholeFor(d time.Duration) {
	m, dir := f.victim(), f.direction()
	f.log("%s is cut off %v for %v", m.name, dir, d)
	m.end.blackhole(dir)
	f.after(d, func() {
		f.log("%s heals", m.name)
		m.end.heal()
	})
}

func (f *faults) disconnectAll() {
	f.log("disconnect all")
	f.w.server.Disconnect()
}

func (f *faults) disconnect() {
	m := f.member()
	f.log("disconnect %s", m.name)
	m.end.cut()
}

func (f *faults) refuse() {
	m := f.member()
	d := time.Duration(f.rng.IntN(6000)) * time.Millisecond
	f.log("disconnect %s and refuse it for %v", m.name, d)
	m.end.setRefuse(true)
	m.end.cut()
	f.after(d, func() { m.end.setRefuse(false) })
}

func (f *faults) refuseAll() {
	d := time.Duration(f.rng.IntN(3000)) * time.Millisecond
	f.log("disconnect all and refuse them for %v", d)
	f.w.server.Refuse(true)
	f.w.server.Disconnect()
	f.after(d, func() { f.w.server.Refuse(false) })
}

func (f *faults) expire() {
	m := f.member()
	id := m.sessionNow()
	if id == 0 || !f.well() {
		return
	}
	f.log("expire the session of %s", m.name)
	all := f.w.contenders("")
	var going []contender
	for _, c := range all {
		if c.session == sessionName(id) {
			going = append(going, c)
		}
	}
	f.w.checks.deleted(going, all)
	ctx, cancel := within(10 * time.Second) // disks can be slow, and the next leader not elected yet
	defer cancel()
	if err := f.w.server.Expire(ctx, id); err != nil {
		f.w.checks.fail("expire: %v", err)
	}
}

func (f *faults) deleteAny() {
	if one, ok := f.w.operator.any(); ok && f.well() {
		f.w.operator.deleteNode(one)
	}
}

func (f *faults) touch() {
	for range 3 {
		if one, ok := f.w.operator.any(); ok {
			f.w.operator.touch(one.path)
		}
	}
	f.w.sleep(faultSlot, 0)
}

func (f *faults) reap() {
	if f.well() {
		f.w.reap()
	}
}

func (f *faults) lag() {
	m, n := f.member(), f.rng.IntN(12)
	id := m.sessionNow()
	if id == 0 || f.w.plan.servers > 1 { // where followers fall behind by themselves
		return
	}
	f.log("%s is served by a follower %d transactions behind", m.name, n)
	_ = f.w.server.Lag(id, n) // the session may be over
}

func (f *faults) delay() {
	d := time.Duration(f.rng.IntN(100)) * time.Millisecond
	f.log("everything takes %v longer", d)
	f.w.server.Delay(d)
	f.after(time.Duration(f.rng.IntN(5000))*time.Millisecond, func() { f.w.server.Delay(0) })
}

// lateReply delays the answer from which the lease clock counts, and no answer follows it.
func (f *faults) lateReply() {
	m := f.victim()
	share := func(percent int) time.Duration {
		return (m.timeout * time.Duration(percent) / 100).Truncate(time.Millisecond)
	}
	// Less than the third of a timeout after which a heartbeat without an answer is given up.
	silent, late := share(5+f.rng.IntN(6)), share(10+f.rng.IntN(10))
	f.log("%s hears nothing for %v, is not heard after %v", m.name, silent+late, silent)
	m.end.blackhole(zktest.ToClient)
	f.after(silent, func() {
		m.end.blackhole(zktest.ToServer)
		f.after(late, func() {
			f.log("%s hears again", m.name)
			m.end.change(func() { m.end.black = zktest.ToServer })
			f.after(share(200), m.end.heal)
		})
	})
}

// amnesia has the server forget a session and give the client another one.
func (f *faults) amnesia() {
	m := f.member()
	f.log("disconnect %s, whose session will not be known", m.name)
	m.end.change(func() { m.end.forget = true })
	m.end.cut()
}

// away disconnects a member, and deletes some of its nodes before it is back.
func (f *faults) away() {
	m := f.member()
	d := time.Duration(200+f.rng.IntN(2500)) * time.Millisecond
	f.log("%s is away for %v", m.name, d)
	m.end.setRefuse(true)
	m.end.cut()
	f.w.sleep(faultSlot, 20*time.Millisecond)
	for _, c := range f.w.contenders("") {
		if c.session == sessionName(m.sessionNow()) && f.rng.IntN(2) == 0 && f.well() {
			f.w.operator.deleteNode(c)
		}
	}
	f.after(d, func() { m.end.setRefuse(false) })
}

// lostTwice has a manager lose its session while the server still has it, and then lose the reply to
// the first create of the next session.
func (f *faults) lostTwice() {
	m := f.victim()
	old := m.sessionNow()
	d := (m.timeout * time.Duration(85+f.rng.IntN(40)) / 100).Truncate(time.Millisecond)
	f.log("%s cannot hear for %v, and its next create gets no answer", m.name, d)
	m.end.change(func() { m.end.black, m.end.noBury = zktest.ToClient, true })
	match := func(r zktest.Request) bool {
		return r.Op == zktest.OpCreate && r.Session != 0 && r.Session != old && r.Session == m.sessionNow()
	}
	if f.rng.IntN(2) == 0 {
		f.arm(f.w.server.CutBefore(match), 20*time.Second)
	} else {
		f.arm(f.w.server.CutAfterCommit(match), 20*time.Second)
	}
	f.after(d, func() {
		m.end.change(func() { m.end.black = 0 })
		f.after(2*time.Second, m.end.heal)
	})
}

// behind loses the reply to a create, and sends the next connection to another server, which does
// not have the node yet.
func (f *faults) behind() {
	m := f.member()
	f.log("the next create of %s loses its reply", m.name)
	m.end.change(func() { m.end.losing = true })
}

// unwatched deletes a waiter's node and one ahead of it while the waiter has a watch on the other and none on its own.
func (f *faults) unwatched() {
	waiter, ahead, ok := f.neighbours()
	if !ok || !f.well() {
		return
	}
	f.log("%s is written to, and the next watches of its session are held", waiter.path)
	held := f.w.server.HoldRequest(func(r zktest.Request) bool {
		return r.Op == zktest.OpSetWatches && r.Session != 0 && sessionName(r.Session) == waiter.session
	})
	f.arm(held, 200*time.Millisecond+f.upTo(time.Second))
	f.w.operator.touch(waiter.path)
	f.w.sleep(faultSlot, 50*time.Millisecond)
	for _, c := range []contender{waiter, ahead} {
		f.w.operator.deleteNode(c)
		f.w.sleep(faultSlot, f.upTo(50*time.Millisecond))
	}
}

// neighbours draws a contender, and returns it and the one before it.
func (f *faults) neighbours() (c, ahead contender, ok bool) {
	c, ok = f.w.operator.any()
	if !ok {
		return c, ahead, false
	}
	ok = false
	for _, other := range f.w.contenders(c.dir) {
		if other.dir == c.dir && other.seq < c.seq && (!ok || other.seq > ahead.seq) {
			ahead, ok = other, true
		}
	}
	return c, ahead, ok
}
