// Package zktest gives tests a ZooKeeper to run against, and the failures that
// a real one has in production.
//
// [Start] runs a server within this process, or with [Servers] an ensemble, over
// TCP or over pipes: for unit tests, and for simulation, since in a bubble of
// testing/synctest an hour of its sessions' time passes in no time. See [Server].
//
// [StartReal] runs one server, or an ensemble of several, as child processes:
// real ZooKeeper, from ZOOKEEPER_HOME or from Debian's packages. Each can be
// stopped, killed, paused and started again on the same data and ports.
//
// [StartProxy] puts a proxy in front of one server. The proxy reads the
// protocol frame by frame, so that it can break things at an exact place: cut
// the connection before a create is processed, or after it is committed and
// before its reply; hold one request, one reply or one watch event back; make
// one direction of the network disappear; expire a session. A [Server] has the
// same methods, and needs no proxy for them. The servers of its ensemble can also
// be cut off from each other, stand still, and be stopped.
//
//	func TestLockSurvivesLostReply(t *testing.T) {
//		ensemble := zktest.StartReal(t)
//		proxy := zktest.StartProxy(t, ensemble.Addr(0))
//		cut := proxy.CutAfterCommit(zktest.On(zktest.OpCreate, "/locks/"))
//		// … take a lock through proxy.Addr() …
//		<-cut.Hit()
//	}
//
//	func TestLockSurvivesAnHour(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			srv := zktest.Start(t)
//			m, err := session.Connect(t.Context(), "any:2181", session.WithDialer(srv.Dialer()))
//			// …
//			srv.Blackhole(zktest.Both)
//			time.Sleep(time.Hour)
//		})
//	}
//
// # Where there is no ZooKeeper
//
// StartReal skips the test, unless the environment variable [RequireEnv] is
// set: set it in continuous integration, where a skipped test is a hole. Start
// needs nothing.
//
// # What is and what is not guaranteed
//
// A server's process ends with [Ensemble.Close]; on Linux also when the test
// process dies in any other way, kill -9 included. Its data directory is then
// left in the temporary directory. Servers do not sync their log to disk, so
// data survives [Ensemble.Kill] but not a crash of the machine.
//
// A Server answers as ZooKeeper 3.8.0 does: the tests of this package send
// scripted and random requests of several clients to both, and compare codes,
// stats, transaction numbers, data, watch events and their order, of a server
// alone, of followers and of leaders. It keeps nothing on disk, and is not meant
// for production.
//
// The package depends on nothing outside the standard library and this module,
// and not on package testing, so that programs can use it too: [NewReal] and
// [NewProxy] return errors, and so does [New]. Everything here is safe for
// concurrent use.
package zktest
