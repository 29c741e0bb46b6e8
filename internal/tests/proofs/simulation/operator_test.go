package simulation

import (
	"math/rand/v2"
	"path"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// operator changes nodes on the server as a person might, over a connection that works.
type operator struct {
	w   *world
	m   *session.Manager
	end *endpoint
	rng *rand.Rand
}

func newOperator(w *world) *operator {
	o := &operator{w: w, end: newEndpoint(w, operatorSlot, "oper"), rng: rand.New(rand.NewPCG(w.seed, 2))}
	ctx, cancel := within(time.Minute)
	defer cancel()
	_, identity := w.sasl()
	m, err := session.Connect(ctx, "zookeeper:2181", append(identity,
		session.WithTimeout(10*time.Minute),
		session.WithTickTime(w.plan.tick),
		session.WithDialer(o.end.dial),
		backoff(w.seed, operatorSlot),
		session.WithLogger(quiet()))...)
	if err != nil {
		w.checks.fail("operator: %v", err)
		return o
	}
	o.m = m
	return o
}

func (o *operator) close() {
	if o.m != nil {
		_ = o.m.Close()
	}
}

// touch writes to a contender's node, or revokes its lock.
func (o *operator) touch(node string) {
	if o.m == nil {
		return
	}
	ctx, cancel := within(time.Second)
	defer cancel()
	if o.w.kind.revocable && o.rng.IntN(2) == 0 {
		o.w.trace.add("oper", "revoke %s", node)
		_ = zklock.Revoke(ctx, o.m, node) // it may be gone
		return
	}
	s, err := o.m.Session(ctx)
	if err != nil {
		return
	}
	o.w.trace.add("oper", "touch %s", node)
	_, _ = s.Set(ctx, node, []byte("touched"), -1) // it may be gone
}

// deleteNode deletes a contender's node.
func (o *operator) deleteNode(c contender) {
	o.w.checks.deleted([]contender{c}, o.w.contenders(""))
	o.w.trace.add("fault", "delete %s", c.path)
	_ = o.w.server.DeleteNode(c.path) // it may be gone
}

// any picks a contender, if there is one.
func (o *operator) any() (contender, bool) {
	all := o.w.contenders("")
	if len(all) == 0 {
		return contender{}, false
	}
	return all[o.rng.IntN(len(all))], true
}

// disturb touches nodes for a while. That must delay no hand-over.
func (o *operator) disturb(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		o.w.sleep(faultSlot, time.Duration(50+o.rng.IntN(500))*time.Millisecond)
		one, ok := o.any()
		switch n := o.rng.IntN(8); {
		case n == 0:
			o.w.reap()
		case !ok:
		case n == 1:
			o.deleteNode(one)
		default:
			o.touch(one.path)
		}
	}
}

// removeDirectories removes the directories of locks that are no containers.
func (o *operator) removeDirectories() {
	if o.m == nil {
		return
	}
	ctx, cancel := within(time.Second)
	defer cancel()
	s, err := o.m.Session(ctx)
	if err != nil {
		return
	}
	for _, p := range o.w.plan.paths {
		below, _, _ := s.Children(ctx, p) // it may be gone
		for _, name := range below {
			if _, ok := queue.ParseNode(name); !ok { // a contender's is seen by what follows
				_ = s.Delete(ctx, path.Join(p, name), -1) // it may be in use
			}
		}
		_ = s.Delete(ctx, p, -1)
	}
}

func (w *world) reap() {
	if n := w.server.ReapContainers(); n > 0 {
		w.trace.add("fault", "%d containers reaped", n)
	}
}
