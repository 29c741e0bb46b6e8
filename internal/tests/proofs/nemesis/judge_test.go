//go:build linux

package nemesis

import (
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"
)

// rule says how much of a lock may be held at once.
type rule struct {
	limit  int  // of the weights of holds that have one
	shared bool // consecutive holds of one process can have one token, because it handed its place over, or kept it
}

// verdict is what the history of a lock shows.
type verdict struct {
	violations []string // no order explains what was held
	other      []string // whatever else is wrong
	again      int      // holds in a place that had been held before
}

// add adds the verdict on a later piece of the history.
func (v *verdict) add(w verdict) {
	v.violations, v.other = append(v.violations, w.violations...), append(v.other, w.other...)
	v.again += w.again
}

// of returns the verdict with the name of the lock in each finding.
func (v verdict) of(lock string) verdict {
	for _, list := range [][]string{v.violations, v.other} {
		for i, found := range list {
			list[i] = lock + ": " + found
		}
	}
	return v
}

// judge judges the history of a lock.
func judge(r rule, events []event, deaths map[lifeID]int64) (v verdict) {
	v.other = strangers(events)
	for _, all := range spans(events, deaths) {
		seen := make(map[int64]bool)
		for _, s := range all {
			if s.token != 0 && seen[s.token] {
				v.again++
			}
			seen[s.token] = true
		}
		bad, undecided := linearizable(history(all), r)
		v.violations, v.other = append(v.violations, bad...), append(v.other, undecided...)
	}
	return v
}

// strangers returns the calls that a server has refused because it did not know who asked.
func strangers(events []event) (found []string) {
	for _, e := range events {
		if strings.Contains(e.Error, zk.ErrNoAuth.Error()) || strings.Contains(e.Error, zk.ErrAuthFailed.Error()) {
			found = append(found, fmt.Sprintf("%v was a stranger: %s: %s", e.id(), e.What, e.Error))
		}
	}
	return found
}
