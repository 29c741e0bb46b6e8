// Package session connects a program to ZooKeeper. It keeps one session open, and reconnects to any of the servers.
//
// A [Manager] lives as long as the process and owns the connection. It hands out a [Session], which is exactly one
// ZooKeeper session. When that is lost, so is everything held under it, and the manager opens another.
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
//	node, err := s.Enter(ctx, session.NewNode{Dir: "/workers", Name: "host7", Fixed: true})
//
// Programs that only want locks pass the Manager to package zklock, rwlock or semaphore.
//
// The servers have to be ZooKeeper 3.5.5 or later. Package zk, whose errors, access control lists and operations are
// part of the API, is github.com/go-zookeeper/zk.
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
// A session ends once, when the manager goes to Lost or Closed. It is lost when its clock runs out, because no answer
// proves in time that the servers still have it, when a server says that it has expired, when another session
// answers, when the servers refuse an identity, and with [WithLossOnSuspend] when its connection breaks.
//
// # What is guaranteed
//
//   - A session reports itself lost before the ensemble can have expired it: see docs/clock.md of the
//     repository. The first [Session.Err] after a long pause is right already.
//   - A lost session never comes back. The manager closes it on the servers, which deletes its nodes.
//   - A request waits for a connection as long as its context lasts. A read whose reply is lost is sent again. A write
//     is not: see [ErrUncertain].
//   - [Session.Enter] makes one ephemeral node or none, and [Session.Remove] and [Node.Remove] delete a node for
//     certain, however often replies and connections are lost.
//   - A call returns at once when its context ends.
//
// # What is not guaranteed
//
//   - The lease clock assumes that this machine's clock runs at the rate of the leader's, to within the margin. It
//     counts suspensions on Linux, macOS and Windows. Elsewhere, and in a virtual machine that its host stops, a
//     holder may believe in its lock for too long. Where that must not do harm, use a fencing token: see package
//     [github.com/turnstile-go/turnstile/fence].
//   - It assumes that minSessionTimeout is two ticks or more, or that [WithTickTime] is set, and that these settings
//     do not change under running clients. "What operators have to know" in docs/reliability.md has the rest.
//
// # Concurrency
//
// Any number of goroutines may use a Manager, its sessions and everything they return at once. A nil context panics.
package session
