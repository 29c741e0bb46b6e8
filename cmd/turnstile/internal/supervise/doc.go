// Package supervise runs a command for as long as a lock is held, and ends it in time if the lock
// is lost: see [Run].
//
// There are three processes or more. Turnstile holds the lock and starts the command, which leads
// a process group of its own. A guard, which is this program again, waits beside them. It kills the group
// when turnstile is dead, and when turnstile has not told it for too long that the lock is still
// held, as when turnstile is stopped. So the promise that the command ends before the lease does not
// depend on turnstile being able to run.
//
// The command begins as a starter, which is this program too. The starter becomes the command once the guard
// knows the group and a deadline.
package supervise
