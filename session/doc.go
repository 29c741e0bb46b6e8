// Package session connects a program to ZooKeeper. It keeps one session open, reconnects to any of the servers, and
// reports the session lost before the servers can expire it.
//
// A [Manager] lives as long as the process and owns the connection. It hands out a [Session], which is exactly one
// ZooKeeper session. When that session is lost, everything held under it is lost too, and the manager opens another
// session.
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
// Programs that only want locks pass the Manager to package zklock, rwlock or semaphore. [Connect] waits for a session.
// [Open] does not, for services that start while ZooKeeper is away.
//
// The servers have to be ZooKeeper 3.5.5 or later. Package zk, whose errors, access control lists and operations of
// [Session.Multi] are part of the API, is github.com/go-zookeeper/zk.
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
// A Session is handed out in state Connected, and survives any number of steps between that and Suspended. It ends
// once, when the manager goes to Lost or Closed.
//
// A session ends when its clock runs out, because no answer proves in time that the servers still have it, or because
// this process stood still. It also ends when a server says that it has expired, when another session answers on its
// connection, when the servers refuse an identity of [WithAuth], when the manager is closed, and with
// [WithLossOnSuspend] when its connection is lost.
//
// # What is guaranteed
//
//   - A session reports itself lost before the ensemble can have expired it. It counts its timeout from a request of
//     which the leader has certainly heard, and while it owns nodes only a write that a quorum has agreed to proves
//     that. docs/clock.md of the repository has more.
//   - [Session.Err] and [Session.Remaining] read the clock when they are called, so the first call after a long pause
//     is right.
//   - A lost session never comes back. The manager closes it on the server in the background, which deletes its nodes.
//   - A request waits for a connection, for as long as its context lasts. If the reply is lost, a read or a Sync is
//     sent again. A Create, Set, Delete or Multi is sent once, and fails then with an error that matches
//     [ErrUncertain].
//   - [Session.Enter] makes one ephemeral node, or none, also if the reply is lost. If it fails or its context ends,
//     whatever it has made is removed in the background.
//   - [Session.Remove] and [Node.Remove] delete a node for certain, however often the connection is lost.
//   - A call returns at once when its context ends. [Manager.Close] takes at most 5 seconds, whatever functions of the
//     program do.
//
// # What is not guaranteed
//
//   - The lease clock assumes that the clock of this machine runs at the rate of the leader's, to within the margin. On
//     Linux, macOS and Windows it counts the time for which the machine was suspended. On other systems, and in a
//     virtual machine that its host stops without telling it, a holder may believe in its lock for too long. Where that
//     must not do harm, use a fencing token: see package [github.com/turnstile-go/turnstile/fence].
//   - The clock assumes that minSessionTimeout is two ticks or more, as it is by default. If it is not, set the tick
//     with [WithTickTime]. Until a manager knows the tick, its sessions survive shorter outages.
//   - Do not change tickTime, minSessionTimeout or maxSessionTimeout under running clients. A manager learns the tick
//     once.
//   - If the servers use TLS among each other, set leader.closeSocketAsync: otherwise the leader's pinging thread can
//     hang. Observers behind observer masters are not supported.
//   - The ensemble may keep the nodes of an expired session for longer than the timeout. If an operator deletes a node
//     or expires a session by hand, the client learns of it when the server says so.
//
// # Logs
//
// The logger of [WithLogger] is told what an operator has to know, in lines such as these:
//
//	INFO zookeeper session opened session=0x1dc6acfac000000 server="zk1:2181 (10.0.0.1:2181)" timeout=10s
//	WARN zookeeper session suspended session=0x1dc6acfac000000 server="zk1:2181 (10.0.0.1:2181)"
//	  cause="the server closed the connection" remaining=6.834s
//	WARN no connection to zookeeper err="dial zk1:2181 (10.0.0.1:2181): connection refused; dial zk2:2181
//	  (10.0.0.2:2181): no answer" dials=9 outage=2s
//	INFO zookeeper session reconnected session=0x1dc6acfac000000 server="zk2:2181 (10.0.0.2:2181)"
//	  timeout=10s outage=4.2s
//
// An outage of an hour makes fewer than 30 lines, and the first one comes within seconds.
//
// # Concurrency
//
// Any number of goroutines may use a Manager, its sessions and everything they return at once. A nil context panics.
package session
