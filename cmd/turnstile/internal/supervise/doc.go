// Package supervise runs a command for as long as a lock is held, and ends it in time if the lock
// is lost: see [Run].
//
// There are three processes or more. Turnstile holds the lock. It starts a guard, which is this program again, and the
// guard starts the command, which leads a process group of its own, or on a terminal is in that of turnstile:
//
//	turnstile --- turnstile-guard --- the command --- its descendants
//
// The guard is the command's parent. On Linux it also becomes the parent of each descendant whose own parent has ended
// (a subreaper), so it finds all of them, whatever group or session they have moved to. Turnstile is a subreaper too, and
// inherits them if the guard dies. So they stay in sight whichever of the two dies.
//
// Turnstile decides, and the guard does what it is told, in lines that turnstile writes to a socket. The guard acts by
// itself in two cases: turnstile is gone, or turnstile has not told it for too long that the lock is still held, as when
// turnstile is stopped. Then it kills the command and all descendants. So the promise that the command ends before the
// lease does not depend on turnstile being able to run.
//
// If turnstile is gone and all of them are dead, the guard frees the lock at once. It knows what to free before turnstile
// contends: see [Guard.Note].
package supervise
