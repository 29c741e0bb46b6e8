//go:build linux

package nemesis

import (
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"
)

// subject is a lock that is attacked: how many use it in each worker, and by what rules they
// hold it.
type subject struct {
	name  string   // the last element of its path
	hands int      // contenders in each worker
	dirs  []string // directories of its own below its path
	lone  bool     // when all rest, each contender takes it alone
	acl   []zk.ACL // of its directory; nil: it is open to all, and the workers make it
	judge func(events []event, all []span, deaths map[lifeID]int64) verdict
}

// verdict is what the history of a lock shows.
type verdict struct {
	violations []string // holds beside others that exclude them
	illegal    []string // pieces that are not linearizable
	undecided  int      // pieces that took the checker too long
	meanwhile  string   // what is to be said of resizes, kept places or refusals; "" if there are none
}

// alone is the one lock of a rival.
var alone = subject{name: "lock", hands: 1, judge: judgeMutex}

// subjects are the locks of this module. The multi-lock is last, as it takes some of the others.
var subjects = []subject{
	{name: mutexName, hands: 1, judge: judgeMutex},
	{name: localName, hands: 3, judge: judgeLocal},
	{name: rwName, hands: 3, judge: judgeRW},
	{name: semaphoreName, hands: 2, judge: judgeSemaphore},
	{name: curatorName, hands: 2, dirs: []string{"leases", "locks"}, judge: judgeCurators},
	{name: batchedName, hands: 6, dirs: batchedDirs, judge: judgeBatched},
	{name: keptName, hands: 1, judge: judgeKept},
	{name: keptRWName, hands: 2, judge: judgeKeptRW},
	{name: electionName, hands: 2, judge: judgeMutex},
	{name: triedName, hands: triedHands, lone: true, acl: closedTo(), judge: judgeTried(judgeLocal)},
	{name: triedRWName, hands: triedHands, lone: true, judge: judgeTried(judgeRW)},
	{name: triedSemName, hands: triedHands, lone: true, judge: judgeTried(judgeTriedSemaphore)},
	{name: multiName, hands: 1, judge: judgeMutex},
}

func subjectOf(name string) subject {
	return subjects[slices.IndexFunc(subjects, func(s subject) bool { return s.name == name })]
}

// chosen returns the locks with some names, and those that the multi-lock takes if it is among them.
func chosen(names []string) (some []subject, err error) {
	if slices.Contains(names, multiName) {
		names = append(names, slices.Concat(multiParts...)...)
	}
	var known []string
	for _, s := range subjects {
		known = append(known, s.name)
		if slices.Contains(names, s.name) {
			some = append(some, s)
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("no lock %q: want some of %q", name, known)
		}
	}
	return some, nil
}

func judgeMutex(_ []event, all []span, _ map[lifeID]int64) verdict {
	bad, unknown := linearizable(lockHistory(all), lockState{}, lockModel, afterLock)
	return verdict{violations: overlaps(all), illegal: bad, undecided: unknown}
}

// judgeBatched is judgeMutex for each of the mutexes.
func judgeBatched(events []event, all []span, deaths map[lifeID]int64) (v verdict) {
	for i := range batchedDirs {
		one := slices.DeleteFunc(slices.Clone(all), func(s span) bool { return s.Of != i+1 })
		w := judgeMutex(events, one, deaths)
		v.violations, v.illegal = append(v.violations, w.violations...), append(v.illegal, w.illegal...)
		v.undecided += w.undecided
	}
	return v
}

// judgeLocal is judgeMutex for holders that can have a token in common with the one before in
// the same process.
func judgeLocal(_ []event, all []span, _ map[lifeID]int64) verdict {
	bad, unknown := linearizable(lockHistory(all), lockState{}, localModel, afterLock)
	return verdict{violations: overlaps(all), illegal: bad, undecided: unknown}
}

func judgeRW(_ []event, all []span, _ map[lifeID]int64) verdict {
	bad, unknown := linearizable(rwHistory(all), rwState{}, rwModel, afterRW)
	return verdict{violations: rwOverlaps(all), illegal: bad, undecided: unknown}
}

// judgeKept is judgeLocal for a lock whose places are kept.
func judgeKept(events []event, all []span, deaths map[lifeID]int64) verdict {
	v := judgeLocal(events, all, deaths)
	v.meanwhile = sharedTokens(all)
	return v
}

// judgeKeptRW is judgeRW for writers that can have a token in common with the one before in the same
// process.
func judgeKeptRW(_ []event, all []span, _ map[lifeID]int64) verdict {
	bad, unknown := linearizable(rwHistory(all), rwState{}, keptRWModel, afterRW)
	return verdict{violations: rwOverlaps(all), illegal: bad, undecided: unknown, meanwhile: sharedTokens(all)}
}

// sharedTokens says how many holds had the token of an earlier one.
func sharedTokens(all []span) string {
	seen, again := make(map[int64]bool), 0
	for _, s := range all {
		if s.token != 0 && seen[s.token] {
			again++
		}
		seen[s.token] = true
	}
	return fmt.Sprintf("%d holds of %d in a place that had been held before", again, len(all))
}

func judgeSemaphore(events []event, all []span, deaths map[lifeID]int64) verdict {
	return judgeLimit(all, resizes(events, deaths), firstLimit)
}

func judgeTriedSemaphore(_ []event, all []span, _ map[lifeID]int64) verdict {
	return judgeLimit(all, nil, triedLimit)
}

// judgeTried adds how often a try was refused.
func judgeTried(judge func([]event, []span, map[lifeID]int64) verdict) func([]event, []span, map[lifeID]int64) verdict {
	return func(events []event, all []span, deaths map[lifeID]int64) verdict {
		v := judge(events, all, deaths)
		v.meanwhile = refusals(events)
		return v
	}
}

func judgeCurators(_ []event, all []span, _ map[lifeID]int64) verdict {
	return judgeLimit(all, nil, curatorLimit)
}
