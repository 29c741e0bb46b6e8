// Package queue is package queue as it will be: a contender is a function that enters, decides, waits, holds and leaves. So
// far it has the two pure decisions of that function, [Decide] on a listing and [Look] on watches.
//
// The test of the package drives both through every schedule of small worlds.
package queue
