package session

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/plumbing"
)

// The lock packages reach what is below through package plumbing, so that it is not in the
// public API of this package.

func init() {
	plumbing.Of = func(s any) plumbing.Session { return (*sessionPlumbing)(s.(*Session).made()) }
	plumbing.OfManager = func(m any) plumbing.Manager { return (*managerPlumbing)(m.(*Manager).made()) }
	plumbing.ValidatePath = validatePath
	plumbing.Uncertain = uncertain
}

// managerPlumbing is a Manager with the methods of plumbing.Manager.
type managerPlumbing Manager

func (m *managerPlumbing) Chroot() string                { return m.cfg.outward("/") }
func (m *managerPlumbing) Logger() *slog.Logger          { return m.cfg.log }
func (m *managerPlumbing) Retry() func() backoff.BackOff { return m.cfg.retry }
func (m *managerPlumbing) Trace() any                    { return m.cfg.trace.load() }

func (m *managerPlumbing) AddTrace(t any) {
	if state := m.cfg.trace.add(t.(Trace)); state != nil {
		(*Manager)(m).Subscribe(state)
	}
}

func (m *managerPlumbing) CallLate(hooks func()) { m.cfg.trace.late.add(hooks) }

func (m *managerPlumbing) SetACL(acl []zk.ACL) { m.cfg.setACL(acl) }

func (m *managerPlumbing) SetWindow(calls int) { m.cfg.window.Store(int32(calls)) }

func (m *managerPlumbing) live() *Session {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.session
}

func (m *managerPlumbing) Live() any              { return m.live() }
func (m *managerPlumbing) Timeout() time.Duration { return m.cfg.timeout }

func (m *managerPlumbing) Failure() error {
	m.mu.Lock()
	refused := m.refused
	m.mu.Unlock()
	return cmp.Or(refused, m.dialer.lastFailure())
}

func (m *managerPlumbing) Silence() error {
	s := m.live()
	if s == nil {
		return nil
	}
	if noBytes, _ := silenceOf(s.present()); noBytes >= notableSilence {
		return fmt.Errorf("no answer from %v for %v", s.server(), noBytes.Round(100*time.Millisecond))
	}
	return nil
}

// notableSilence is how long a silence is that the error of a wait mentions.
const notableSilence = time.Second

func (m *managerPlumbing) Server() string {
	s := m.live()
	if s == nil {
		return ""
	}
	return s.server().Name()
}

func (m *managerPlumbing) FirstWarning(path string, zxid int64) bool {
	m.warned.mu.Lock()
	defer m.warned.mu.Unlock()
	node := warnedNode{path, zxid}
	if m.warned.nodes[node] {
		return false
	}
	if m.warned.nodes == nil || len(m.warned.nodes) >= maxWarned {
		m.warned.nodes = make(map[warnedNode]bool)
	}
	m.warned.nodes[node] = true
	return true
}

// warned has the nodes that a warning was logged about.
type warned struct {
	mu    sync.Mutex
	nodes map[warnedNode]bool
}

type warnedNode struct {
	path string
	zxid int64 // of the transaction that made it
}

// maxWarned bounds the memory for nodes that a warning was logged about.
const maxWarned = 1000

// sessionPlumbing is a Session with the methods of plumbing.Session.
type sessionPlumbing Session

func (p *sessionPlumbing) session() *Session { return (*Session)(p) }

func (p *sessionPlumbing) AfterEnd(f func()) { context.AfterFunc(p.life, f) }

func (p *sessionPlumbing) MakeParents(ctx context.Context, dir string) error {
	return p.session().makeParents(ctx, dir)
}

func (p *sessionPlumbing) NearestACL(ctx context.Context, path string) (at string, acl []zk.ACL, err error) {
	return p.session().nearestACL(ctx, path)
}

func (p *sessionPlumbing) NodeBytes(path string, sequential bool) int {
	return p.session().sizeOfNew(path, sequential).bytes
}

func (p *sessionPlumbing) Leaving(path string) { p.room.depart(p.room.noted(path)) }

func (p *sessionPlumbing) OnShortage(spare func(nodes, bytes int) bool) {
	p.room.mu.Lock()
	defer p.room.mu.Unlock()
	p.room.spare = func(a amount) bool { return spare(a.nodes, a.bytes) }
}

func (p *sessionPlumbing) Reserve(ctx context.Context, w plumbing.Want) (plumbing.Room, error) {
	s := p.session()
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	v, err := s.reserve(ctx, s.wanted(w))
	if err != nil {
		return nil, err
	}
	return (*roomPlumbing)(v), nil
}

func (p *sessionPlumbing) Extend(ctx context.Context, r plumbing.Room, w plumbing.Want) error {
	s := p.session()
	return s.extend(ctx, reservationOf(r), s.wanted(w))
}

func (s *Session) wanted(w plumbing.Want) wanted {
	size, _ := s.room.netSize(amount{w.Nodes, w.Bytes}, w.Deletes)
	return wanted{size: size, yield: w.Yield, over: w.Over}
}

// roomPlumbing is a reservation with the methods of plumbing.Room.
type roomPlumbing reservation

func (v *roomPlumbing) End() { (*reservation)(v).end() }

// reservationOf returns the reservation of r, which may be nil.
func reservationOf(r plumbing.Room) *reservation {
	if r == nil {
		return nil
	}
	return (*reservation)(r.(*roomPlumbing))
}

func (p *sessionPlumbing) StartCreate(ctx context.Context, r plumbing.Room, path string, data []byte, flags int32) (plumbing.Creation, error) {
	c, err := p.session().startCreate(ctx, reservationOf(r), path, data, CreateMode{flag: flags})
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (p *sessionPlumbing) StartMulti(ctx context.Context, r plumbing.Room, ops ...any) (plumbing.Transaction, error) {
	t, err := p.session().startMulti(ctx, reservationOf(r), ops)
	if err != nil {
		return nil, err
	}
	return t, nil
}

func (p *sessionPlumbing) SharedSync(ctx context.Context, path string, after int64) error {
	return p.session().sharedSync(ctx, path, after)
}

func (p *sessionPlumbing) Adopt(r plumbing.Room, path string) {
	p.room.found(path, p.session().sizeOfNew(path, false), reservationOf(r))
}

func (p *sessionPlumbing) StartWatch(ctx context.Context, path string) (plumbing.Watch, error) {
	if err := validatePath(path); err != nil {
		return nil, err
	}
	s := p.session()
	if err := s.ready(ctx); err != nil {
		return nil, opError(RequestInfo{Op: "getData", Path: path}, err)
	}
	return (*watchPlumbing)(s.startWatch(ctx, path)), nil
}

func (p *sessionPlumbing) StartWatches(ctx context.Context, paths ...string) ([]plumbing.Watch, error) {
	for _, path := range paths {
		if err := validatePath(path); err != nil {
			return nil, err
		}
	}
	s := p.session()
	if err := s.ready(ctx); err != nil {
		return nil, opError(RequestInfo{Op: "setWatches", Path: paths[0]}, err)
	}
	all := make([]plumbing.Watch, len(paths))
	for i, w := range s.startWatches(ctx, paths) {
		all[i] = (*watchPlumbing)(w)
	}
	return all, nil
}

func (p *sessionPlumbing) Watch(ctx context.Context, path string) ([]byte, *zk.Stat, plumbing.Watch, error) {
	data, stat, w, err := p.session().Watch(ctx, path)
	if err != nil {
		return nil, nil, nil, err
	}
	return data, stat, (*watchPlumbing)(w), nil
}

func (p *sessionPlumbing) WatchChildren(ctx context.Context, path string) (plumbing.Watch, error) {
	if err := validatePath(path); err != nil {
		return nil, err
	}
	w, err := p.session().watchChildren(ctx, path)
	if err != nil {
		return nil, err
	}
	return (*watchPlumbing)(w), nil
}

func (p *sessionPlumbing) Children(ctx context.Context, path string) ([]string, *zk.Stat, error) {
	if err := validatePath(path); err != nil {
		return nil, nil, err
	}
	c, err := p.session().childrenOf(ctx, path)
	return c.names, c.stat, err
}

func (p *sessionPlumbing) List(ctx context.Context, path string) ([]string, *zk.Stat, plumbing.Watch, error) {
	if err := validatePath(path); err != nil {
		return nil, nil, nil, err
	}
	names, stat, w, err := p.session().list(ctx, path)
	if err != nil {
		return nil, nil, nil, err
	}
	return names, stat, (*watchPlumbing)(w), nil
}

func (p *sessionPlumbing) InTurn(f func()) { p.errands.add(f) }

func (p *sessionPlumbing) GiveBack(path string, w plumbing.Watch) {
	p.watches.giveBack(p.session().outward(path), w.(*watchPlumbing).watch())
}

func (p *sessionPlumbing) Forget(path string, w plumbing.Watch) {
	p.watches.forget(p.session().outward(path), w)
}

func (p *sessionPlumbing) Remove(ctx context.Context, path string) plumbing.Removal {
	return p.session().remove(ctx, path, nil)
}

func (p *sessionPlumbing) RemoveAfter(ctx context.Context, path string, after <-chan struct{}) plumbing.Removal {
	return p.session().remove(ctx, path, after)
}

func (p *sessionPlumbing) Removals() plumbing.Removals { return &removals{s: p.session()} }

func (p *sessionPlumbing) Sweep(ctx context.Context, dir string, match func(name string) bool, lost plumbing.Creation) plumbing.Removal {
	return p.session().sweep(ctx, dir, match, lost)
}

func (p *sessionPlumbing) Claim(ctx context.Context, path string) (plumbing.Claim, error) {
	c, err := p.session().claim(ctx, path)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (p *sessionPlumbing) TryClaim(path string) (plumbing.Claim, bool) {
	c, ok := p.session().tryClaim(path)
	if !ok {
		return nil, false
	}
	return c, true
}

// watchPlumbing is a Watch with the methods of plumbing.Watch.
type watchPlumbing Watch

func (w *watchPlumbing) watch() *Watch                     { return (*Watch)(w) }
func (w *watchPlumbing) Set() <-chan struct{}              { return (*Watch)(w).set.Wait() }
func (w *watchPlumbing) Answered() bool                    { return (*Watch)(w).ready.Has() }
func (w *watchPlumbing) Ready() <-chan struct{}            { return (*Watch)(w).ready.Wait() }
func (w *watchPlumbing) Result() ([]byte, *zk.Stat, error) { return w.data, w.stat, w.err }
func (w *watchPlumbing) Event() plumbing.WatchEvent        { return plumbing.WatchEvent(w.watch().Event()) }

func (w *watchPlumbing) Notify(ch chan<- struct{}) (stop func()) {
	return w.watch().atEnd(func() { poke(ch) })
}

func (w *watchPlumbing) AtEvent(f func()) (stop func()) { return w.watch().atEnd(f) }

func (w *watchPlumbing) AfterEvent(f func()) (stop func()) {
	return w.watch().atEnd(func() { go f() })
}

// The events of both packages have the same values: anything else does not compile.
var _ = map[bool]struct{}{
	false: {},
	int(WatchPending) == int(plumbing.WatchPending) &&
		int(WatchDeleted) == int(plumbing.WatchDeleted) &&
		int(WatchChanged) == int(plumbing.WatchChanged) &&
		int(WatchBroken) == int(plumbing.WatchBroken): {},
}
