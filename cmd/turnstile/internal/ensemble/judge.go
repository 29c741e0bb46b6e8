package ensemble

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// judge fills in the problems and the warnings.
func (r *Report) judge() {
	usable := slices.DeleteFunc(slices.Clone(r.Servers), func(s Server) bool { return !s.Usable() })
	if len(usable) == 0 {
		r.problem("No server can be used. No lock can be had.")
	} else {
		for _, what := range r.Refused {
			r.problem("This identity may not %s %s, which locks at %s need. Set --auth, or change the access control list.", what, r.Tried, r.Path)
		}
		r.judgeEnsemble(usable)
		r.judgeTimes(usable)
	}
	for _, s := range r.Servers {
		if !s.Usable() {
			r.warn("%s: %s.", s.Name, s.Error)
		}
	}
}

func (r *Report) problem(format string, args ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

func (r *Report) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

func (r *Report) judgeEnsemble(usable []Server) {
	alone := slices.ContainsFunc(usable, func(s Server) bool { return s.Role == "standalone" })
	switch {
	case alone || r.Voters == 1:
		r.warn("There is one server. While it is down nobody gets a lock, and holders lose theirs when their session timeout is over.")
	case r.Voters > 0 && r.Voters%2 == 0:
		r.warn("%d servers vote. They survive the loss of as many servers as %d would: add one or remove one.", r.Voters, r.Voters-1)
	}
	if r.Voters > 1 && max(r.Listed, len(r.Servers)) < r.Voters {
		r.warn("--zk names %d of the %d servers that vote. A client cannot go on when these are down.", len(r.Servers), r.Voters)
	}
	var versions []string
	for _, s := range usable {
		if s.Version != "" {
			versions = append(versions, s.Version)
		}
	}
	slices.Sort(versions)
	if versions = slices.Compact(versions); len(versions) > 1 {
		r.warn("The servers have different versions: %s.", strings.Join(versions, ", "))
	}
	for _, v := range versions {
		before := func(release string) bool { return versionOf(v) < versionOf(release) }
		if before("3.8.0") {
			r.warn("ZooKeeper %s is not supported any more by its makers.", v)
		}
		var ids []string
		for _, d := range defects {
			if !before(d.from) && before(d.to) {
				ids = append(ids, d.id)
			}
		}
		if len(ids) > 0 {
			r.warn("ZooKeeper %s can lose what it has confirmed (%s), and two clients can then hold the same lock. Run %s or later.",
				v, strings.Join(ids, ", "), soundRelease)
		}
	}
}

// defects are mistakes of ZooKeeper by which servers can lose transactions that a quorum has confirmed. If the create of a
// holder's node is lost, the next contender gets the lock beside the holder, whatever a client does. They are those of the
// releases 3.7 and later that a release has mended, by ZooKeeper's own history. Older releases are not maintained. See
// docs/zookeeper.md.
var defects = []struct{ id, from, to string }{ // the first release that has it, and the first without it
	{"ZOOKEEPER-4785", "3.7.0", "3.8.5"},
	{"ZOOKEEPER-4785", "3.9.0", "3.9.2"},
	{"ZOOKEEPER-4712", "3.7.0", "3.9.3"},
	{"ZOOKEEPER-4925", "3.9.3", "3.9.4"},
}

// soundRelease is the first release that has none of the defects.
const soundRelease = "3.9.4"

// versionOf returns a release as a number that can be compared. Of what cannot be understood it is the highest.
func versionOf(release string) int {
	n := 0
	parts := append(strings.SplitN(release, ".", 3), "0", "0")
	for _, part := range parts[:3] {
		i, err := strconv.Atoi(part)
		if err != nil {
			return math.MaxInt
		}
		n = n*1000 + i
	}
	return n
}

// slowWrite is the part of the session timeout from which a write is slow. Sessions survive commits of a
// fifth of their timeout.
const slowWrite = 20

func (r *Report) judgeTimes(usable []Server) {
	for _, s := range usable {
		if s.Granted != r.Asked {
			r.warn("%s grants a session timeout of %v, not the %v asked for. minSessionTimeout and maxSessionTimeout of the server bound it.", s.Name, s.Granted, r.Asked)
		}
		if s.P99 > s.Granted/slowWrite {
			r.warn("%s is slow: the slowest writes took %v (p99). Sessions of %v are lost when writes take a fifth of that time. Look at the disk of the leader.",
				s.Name, s.P99.Round(time.Millisecond), s.Granted)
		}
	}
}
