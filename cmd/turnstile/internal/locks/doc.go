// Package locks reads the locks of an ensemble as they lie on its servers: which kind of lock a
// directory is, its holders and its waiters. It knows the nodes of this module, Apache Curator,
// kazoo and go-zookeeper.
//
// [Tree] makes the requests. [Tree.Read] reads one lock, and [Tree.Walk] finds all locks below a path. [Tree.Delete]
// deletes the node of a contender. The names and the data are read by pure functions: see [classify], [decide] and
// [describe].
package locks
