package quorum

import (
	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// writes are the requests that change the tree, without multi.
var writes = map[int32]bool{
	codec.OpCreate: true, codec.OpCreate2: true, codec.OpCreateContainer: true, codec.OpCreateTTL: true,
	codec.OpDelete: true, codec.OpSetData: true, codec.OpSetACL: true,
}

// prepare turns a request into a transaction and proposes it. A request that fails becomes a transaction
// without changes.
func (l *leadership) prepare(r *request) *proposal {
	pr := l.preparation(r)
	switch r.op {
	case codec.OpConnect:
		l.tracker.add(r.session, r.timeout)
		l.tracker.own(r.session, r.via)
		return l.agree(pr, &txn{request: r, op: codec.OpConnect, session: r.session, timeout: r.timeout})
	case codec.OpClose:
		l.tracker.close(r.session)
		pr.RemoveOwned()
		return l.agree(pr, &txn{request: r, op: codec.OpClose, session: r.session, changes: pr.Changes})
	}
	t := &txn{request: r}
	switch err := l.tracker.check(r.session, r.via); {
	case err != nil:
		t.err = err
	case r.op == codec.OpMulti:
		t.multi(pr, &l.m.st.conf.Release)
	case r.op == codec.OpReconfig:
		t.err = reconfig(r.body)
	default:
		t.write(pr)
	}
	parsesFirst := r.op == codec.OpReconfig || l.m.st.conf.Release.ParsesFirst && r.op != codec.OpMulti
	if t.err == znode.CodeMarshallingError && r.via == nil && parsesFirst {
		// A ZooKeeper server alone answers without a transaction. A ZooKeeper ensemble never
		// answers, which this one does not imitate.
		l.m.complete(r, func() { r.from.result(r.xid, nil, t.err) })
		return nil
	}
	return l.agree(pr, t)
}

// preparation begins the preparation of a request, from the state that the outstanding proposals will leave.
func (l *leadership) preparation(r *request) *znode.Preparation {
	return znode.Prepare(l.m.tree, l.ahead, r.session, r.ids, l.m.st.conf.Passwords != nil)
}

// agree proposes a transaction. Until it is committed, later requests are prepared from the state that it will leave.
func (l *leadership) agree(pr *znode.Preparation, t *txn) *proposal {
	p := l.propose(t)
	if t.err == nil && len(l.outstanding) > 0 {
		for path, r := range pr.Pending {
			l.ahead[path] = r
		}
	}
	return p
}

// write prepares a single operation.
func (t *txn) write(pr *znode.Preparation) {
	r := t.request
	o := r.body.Operation(r.op)
	if r.body.Bad {
		t.err = znode.CodeMarshallingError
		return
	}
	t.err = pr.Add(o)
	t.changes = pr.Changes
}

// reconfig refuses a reconfiguration, which is disabled in ZooKeeper by default.
func reconfig(d *znode.Decoder) error {
	for range 3 {
		d.Buffer() // joining, leaving, new members: any may be null
	}
	d.Int64()
	if d.Bad {
		return znode.CodeMarshallingError
	}
	return znode.CodeReconfigDisabled
}
