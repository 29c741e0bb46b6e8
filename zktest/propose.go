package zktest

// writes are the requests that change the state, other than multi.
var writes = map[Op]bool{
	OpCreate: true, OpCreate2: true, OpCreateContainer: true, OpCreateTTL: true,
	OpDelete: true, OpSetData: true, OpSetACL: true,
}

// prepare turns a request into a transaction and proposes it. A request that
// fails becomes a transaction too, one without changes.
func (l *leadership) prepare(r *request) *proposal {
	pr := l.preparation(r)
	switch r.op {
	case OpConnect:
		l.tracker.add(r.session, r.timeout)
		l.tracker.own(r.session, r.way)
		return l.agree(pr, &txn{request: r, op: OpConnect, session: r.session, timeout: r.timeout})
	case OpClose:
		l.tracker.close(r.session)
		pr.removeOwned()
		return l.agree(pr, &txn{request: r, op: OpClose, session: r.session, changes: pr.changes})
	}
	t := &txn{request: r}
	switch err := l.tracker.check(r.session, r.way); {
	case err != nil:
		t.err = err
	case r.op == OpMulti:
		t.multi(pr)
	case r.op == OpReconfig:
		if t.err = reconfig(r.body); t.err == codeMarshallingError && r.way == nil {
			// ZooKeeper alone answers without a transaction. An ensemble never answers,
			// which is not worth imitating.
			l.m.complete(r, func() { r.from.result(r.xid, nil, t.err) })
			return nil
		}
	default:
		t.write(pr)
	}
	return l.agree(pr, t)
}

// agree proposes a transaction. Until it is committed, later requests are
// prepared from the state that it will leave.
func (l *leadership) agree(pr *preparation, t *txn) *proposal {
	p := l.propose(t)
	if t.err == nil && len(l.outstanding) > 0 {
		for path, r := range pr.pending {
			l.ahead[path] = r
		}
	}
	return p
}

// write prepares a single operation.
func (t *txn) write(pr *preparation) {
	r := t.request
	o := r.body.operation(r.op)
	if r.body.Bad {
		t.err = codeMarshallingError
		return
	}
	t.err = pr.add(o)
	t.changes = pr.changes
}

// reconfig is disabled, as it is by default.
func reconfig(d *decoder) error {
	for range 3 {
		d.Buffer() // joining, leaving, new members: any may be null
	}
	d.Int64()
	if d.Bad {
		return codeMarshallingError
	}
	return codeReconfigDisabled
}
