// Package setups takes and releases locks on real servers that are set up in each of the ways that
// operators may choose: three servers, TLS, local sessions, read-only mode, an observer. "make proof PROOF=versions"
// runs it on each version of ZooKeeper. Everything is in its tests.
//
// In each setup
//
//   - clients of all servers hand a mutex to each other,
//   - a session moves from server to server while it holds a lock,
//   - no answer was malformed: each was decoded to its last byte.
package setups
