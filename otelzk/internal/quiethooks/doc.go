// Package quiethooks has no code of its own. Its test compares what a session sends to the servers with hooks and
// without them, for every kind of lock: the requests are the same, byte for byte. Hooks see, and change nothing.
package quiethooks
