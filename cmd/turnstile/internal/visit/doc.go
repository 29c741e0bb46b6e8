// Package visit makes a connection to a ZooKeeper server that does one thing and ends: it closes a session, or learns what
// a server grants. Package session keeps one session, so the command speaks this little of the protocol itself.
package visit
