// Package quorum is the core of the in-process server: the servers of an ensemble, the network
// between them, and their ends of the clients' connections.
//
// One goroutine, [State.Run], owns all of that. Other goroutines hand it functions to call, with [State.Do], and
// clients' frames, with [Peer.Write]. So nothing here needs a lock, and in a bubble of testing/synctest the same
// schedule has the same outcome each time. Methods of [State] and [Member] may only be called from within Do, other
// than Run, Do, Close, Expire and DeleteNode.
//
// A request is processed in these steps: its frame arrives ([Peer.Write], requests.go), waits for the earlier requests
// of its session (pipeline.go), is forwarded to the leader (follow.go), becomes a transaction (propose.go), is logged
// by a quorum and committed (lead.go), applied by each server (member.go, replica.go), and answered by the client's
// server. Reads are answered at once (reads.go). What servers refuse to read is in limits.go.
package quorum
