// Package ensemble examines the servers of an ensemble: whether they are good for locks. [Examine] asks each
// server, and makes nodes of its own for a moment. [Judge] says in words what is wrong. It is pure.
package ensemble
