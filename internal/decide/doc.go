// Package decide says what becomes of a place in the queue of a lock: what a listing, a watch, an answer or the end of
// a call changes, and what is to be done then. It does nothing of that itself: its functions are pure, and package
// place carries out what they return.
//
// # The life of a place
//
// A place is one node of ours in one session. [Step] is its transition function, and this is all that can happen:
//
//	in        hears       then      and does  for the caller
//	outside   run         entering  create
//	entering  made        deciding  judge
//	entering  parentless  entering  create
//	entering  reply lost  doubtful  seek
//	doubtful  found       deciding  judge
//	doubtful  not found   entering  create
//	deciding  run         deciding  judge
//	deciding  ahead       waiting   watch
//	deciding  free        holding             granted
//	deciding  outdated    moving              renews
//	waiting   run         waiting   look
//	waiting   quiet       waiting             waits
//	waiting   stirred     stale     list
//	waiting   free        holding             granted
//	waiting   outdated    moving              renews
//	stale     listed      deciding  judge
//	moving    replaced    left
//	holding   used        holding             granted
//	holding   passed      holding             granted
//	holding   kept        keeping
//	keeping   used        holding             granted
//	any       lost        left      remove    again
//	any       quit        left      remove    failed
//
// The answer to an effect is the next input. A place that was left hears nothing any more. A holder that has lost its
// place and goes on until its Unlock keeps no place: package hold knows of it.
//
// # Listings and watches
//
// [Contender.Read] says who is in the way of a contender, by the names of a listing and the Policy of its kind.
// [BySight] says what the watches on those nodes allow. So a listing decides at entry, and watches decide after that,
// as long as they can.
//
// # Files
//
//	states   the states, and what follows what
//	listing  what a listing shows to a contender
//	tail     the last nodes in the way, which is all that is kept of a listing
//	order    who is first
//	policy   what is in the way, and what to watch of it
//	sight    what watches allow
//	newcomer what a listing says to a contender that has not entered
//	holders  the policies of the locks, and which nodes hold
package decide
