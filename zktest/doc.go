// Package zktest is ZooKeeper for tests: a server inside the test process, which starts in an instant,
// real ZooKeeper servers, and the failures that servers and networks have in production.
//
//	func TestReplyIsLost(t *testing.T) {
//		srv := zktest.Start(t)
//		m, err := session.Connect(t.Context(), srv.ConnectString())
//		if err != nil {
//			t.Fatal(err)
//		}
//		defer m.Close()
//		lock, err := zklock.New(m, "/locks/report")
//		if err != nil {
//			t.Fatal(err)
//		}
//		cut := srv.CutAfterCommit(zktest.On(zktest.OpCreate, "/locks/report/"))
//		if err := lock.Lock(t.Context()); err != nil {
//			t.Error(err) // the connection breaks, and Lock succeeds all the same
//		}
//		<-cut.Hit()
//	}
//
// There are three parts:
//
//   - [Start] runs a server in this process. It needs nothing installed. With the option [Servers] it
//     runs an ensemble with a leader, whose servers can be cut off from each other. See [Server].
//   - [StartReal] runs ZooKeeper itself as child processes, one server or an ensemble. Each server can be stopped,
//     killed, paused, and started again with the same data and ports. See [Ensemble].
//   - [StartProxy] puts a proxy in front of any server. It reads the protocol frame by frame, so it
//     can fail at an exact place: before a create is processed, or after it is committed and before
//     its reply arrives. See [Proxy]. A Server has the same methods and needs no proxy.
//
// [Run] runs one test on both kinds of servers. What most tests of code with locks need is [Server.ExpireHolder], by
// which a client loses its lock in the middle of its work, and [Server.WaitFree], after which another session gets what
// was released.
//
// In a bubble of testing/synctest an hour passes in no time, but a TCP connection stops the bubble's clock. Connect
// there without TCP, by session.Connect(ctx, srv.Hosts(), session.WithDialer(srv.Dialer())).
//
// # Real servers
//
// StartReal needs Java, and ZooKeeper from the directory ZOOKEEPER_HOME or from Debian's packages.
// Without them it skips the test. In continuous integration a skipped test goes unnoticed. Set the
// environment variable [RequireEnv] there: then the test fails.
//
// A server's process ends with [Ensemble.Close]. On Linux it also ends when the test process dies in any other way,
// even by kill -9. Then the server's data directory stays behind, in the directory for temporary files. Servers do not
// sync their log to disk, so data survives [Ensemble.Kill] but not a crash of the machine.
//
// # The server in this process
//
// A Server answers as ZooKeeper 3.8.0 does, or as 3.9.6 with the option [Version]. The tests of this package send the
// same requests, scripted and random, to it and to real servers of both versions. They compare result codes, stats,
// transaction numbers, data, watch events and their order, for a server alone, for followers and for leaders. A Server
// keeps nothing on disk, and is not meant for production.
//
// It has ZooKeeper's limits, with ZooKeeper's defaults:
//
//   - It closes the connection of a client that sends a request longer than 1 MiB ([MaxPacket]).
//   - It cannot read the end of a session again if the paths of the session's ephemeral nodes have more than 2 MiB
//     together ([MaxPacket]). Then an ensemble stops serving, and a server alone does not start again. A test with
//     Start fails at its end, so that this is not found out in production.
//
// # Programs
//
// The package depends on nothing but the standard library and this module. It does not import package testing, so
// programs can use it too: [New], [NewReal] and [NewProxy] return errors. Everything here is safe for concurrent use.
package zktest
