// Package zktest is ZooKeeper for tests: servers that start in an instant or are the real thing,
// and the failures that they have in production.
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
//   - [Start] runs a server in this process, or an ensemble with the option [Servers]. It needs
//     nothing installed. In a bubble of testing/synctest an hour passes in no time: connect there by
//     session.Connect(ctx, srv.Hosts(), session.WithDialer(srv.Dialer())), since a TCP connection
//     stops the bubble's clock. See [Server].
//   - [StartReal] runs ZooKeeper itself as child processes, one server or an ensemble. Each server
//     can be stopped, killed, paused, and started again with the same data and ports. See
//     [Ensemble].
//   - [StartProxy] puts a proxy in front of any server. It reads the protocol frame by frame, so it
//     can fail at an exact place: before a create is processed, or after it is committed and before
//     its reply arrives. See [Proxy]. A Server has the same methods and needs no proxy.
//
// # Real servers
//
// StartReal needs Java, and ZooKeeper from the directory ZOOKEEPER_HOME or from Debian's packages.
// Without them it skips the test. Set the environment variable [RequireEnv] in continuous
// integration, where a skipped test goes unnoticed: then the test fails.
//
// A server's process ends with [Ensemble.Close]. On Linux it also ends when the test process dies
// in any other way, including kill -9, which leaves its data directory behind in the temporary
// directory. Servers do not sync their log to disk, so data survives [Ensemble.Kill] but not a
// crash of the machine.
//
// # The server in this process
//
// A Server answers as ZooKeeper 3.8.0 does. The tests of this package send the same requests,
// scripted and random, to both, and compare result codes, stats, transaction numbers, data, watch
// events and their order: for a server alone, for followers and for leaders. A Server keeps nothing
// on disk, and is not meant for production.
//
// # Programs
//
// The package depends on nothing but the standard library and this module. It does not import
// package testing, so programs can use it too: [New], [NewReal] and [NewProxy] return errors.
// Everything here is safe for concurrent use.
package zktest
