// Package room is the account of the ephemeral nodes that a session owns and is about to own. It knows
// numbers, bytes and a queue of those that wait, and no session.
//
// When a session ends, the servers delete its ephemeral nodes by one transaction, which lists their paths. A
// transaction with too many paths, or too long ones, has brought ensembles down. So each session has limited
// room.
//
// A caller that wants nodes reserves the room for all of them first. If there is too little, it waits for its
// turn, first come, first served, while nodes are about to go that will make enough room. Places that are
// kept although nobody holds them are given up for it. The room of holders and of waiters is not on its way:
// they may wait for the caller, and then all would wait for ever.
//
// A create takes its room out of a reservation: a [Node], which lasts while the create is in flight or in
// doubt, and then while its node is there. When a Node ends, its room goes back to the reservation, and to
// all once that has ended. So a MultiLock keeps what it has reserved to its end, whichever of its nodes come
// and go. If a node is created in place of one that is about to go, the reservation is larger until that has
// gone.
package room
