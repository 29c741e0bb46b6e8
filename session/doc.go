// Package session connects a program to ZooKeeper. It keeps one session open, carries its
// requests across reconnects, and reports the session lost before the servers can expire it.
//
// A [Manager] lives as long as the process and owns the connection. It hands out a [Session],
// which is exactly one ZooKeeper session. When that session is lost, everything held under it is
// lost too, and the manager opens another session.
//
//	m, err := session.Connect(ctx, servers) // once per process: "zk1:2181,zk2:2181,zk3:2181"
//	if err != nil {
//		return err
//	}
//	defer m.Close()
//	s, err := m.Session(ctx)
//	if err != nil {
//		return err
//	}
//	// The node is there for as long as the session is.
//	node, err := s.Create(ctx, "/worker-", nil, session.EphemeralSequential)
//
// Programs that only want locks pass the Manager to package zklock, rwlock or semaphore, and need
// nothing else from here.
//
// # States
//
// [Manager.State] and [Manager.Subscribe] tell which of these states a manager is in:
//
//	            connected               disconnected
//	Connecting ───────────► Connected ◄──────────────► Suspended
//	    ▲                       │       reconnected        │
//	    │ the manager           │ the session is lost      │
//	    │ tries again           ▼                          │
//	    └──────────────────── Lost ◄───────────────────────┘
//
//	any state ── Close ──► Closed
//
// A Session is handed out in state Connected. It survives any number of steps between Connected
// and Suspended. It ends once, when the manager goes to Lost or Closed:
//
//	           Connect or Manager.Session returns it
//	opening ─────────────────────────────────────────► live ──► ended
//
//	live:  Err() is nil, Remaining() > 0, Done() is open
//	ended: Err() matches ErrLost or ErrClosed, Remaining() is 0, Done() is closed
//
// A session ends when its clock runs out, when a server says that it has expired, when another
// session answers on its connection, when the servers refuse an identity, when the manager is
// closed, and, with [WithLossOnSuspend], when its connection is lost.
//
// # What is guaranteed
//
//   - A session reports itself lost before the ensemble can have expired it. A leader hears of
//     the clients of other servers only twice a tick. So the session does not count its timeout
//     from the last request that was answered, but from an earlier one, of which the leader has
//     certainly heard. While the session owns nodes, only a write that a quorum has agreed to
//     proves that, because a server that has lost touch with the others answers everything else
//     alone. "The lease clock" in docs/reliability.md has more.
//   - [Session.Err] and [Session.Remaining] read the clock when they are called. So they are
//     right in the first call after a long pause of the process.
//   - A lost session never comes back, even if its connection does. The manager closes it on the
//     server in the background, so that its nodes go.
//   - A call returns at once when its context ends.
//
// # What is not guaranteed
//
//   - The lease clock assumes that the clock of this machine runs at the rate of the leader's, to
//     within the margin. Time that the machine was suspended counts on Linux and macOS. On other
//     systems, and in a virtual machine that its host stops without telling it, a holder may
//     believe in its lock for too long. Use a fencing token for writes to other systems that must
//     never come from a former holder.
//   - The clock assumes that minSessionTimeout is two ticks or more, as it is by default.
//     Otherwise set the tick with [WithTickTime]. Set it in any case if you know it: until a
//     manager has learned the tick, a session is certain for less time.
//   - Do not change tickTime, minSessionTimeout or maxSessionTimeout under running clients. A
//     manager learns the tick only once. A server can come back with a lower limit on session
//     timeouts, and the greeting that says so can be lost.
//   - With TLS between servers, the leader's pinging thread can hang unless
//     leader.closeSocketAsync is set. Observers behind observer masters are not supported.
//   - The ensemble may keep an expired node for longer than the timeout. The clock is a lower
//     bound, not a prediction.
//   - If an operator deletes a node or expires a session by hand, the client learns of it when the
//     server says so, and not before.
//
// # Concurrency
//
// A Manager, its sessions and everything they return may be used by any number of goroutines at
// once. A nil context panics.
package session
