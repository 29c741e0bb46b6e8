// Package znode is the state that ZooKeeper's servers replicate: the tree of nodes with
// their ACLs, and the sessions that own some of them.
//
// A server changes it in two steps, as ZooKeeper does. A [Preparation] checks the operations
// of a request against the state that earlier requests will leave, and turns them into
// changes. [Tree.Apply] makes a change, which can no longer fail, once it is committed.
//
// The package knows no connections, no watches and no clock but that of time to live.
package znode
