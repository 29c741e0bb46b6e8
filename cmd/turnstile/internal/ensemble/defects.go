package ensemble

import (
	"strconv"
	"strings"
)

// defect is a mistake of ZooKeeper by which servers can lose transactions that a quorum has confirmed. If the create of a
// holder's node is lost, the next contender gets the lock beside the holder, whatever a client does.
type defect struct {
	id   string
	from release // the first that has it
	to   release // the first without it, of the same line or a later one
}

// defects are those of the releases 3.7 and later that a release has mended, by ZooKeeper's own history. Older releases are
// not maintained. See docs/zookeeper.md.
var defects = []defect{
	{"ZOOKEEPER-4785", release{3, 7, 0}, release{3, 8, 5}},
	{"ZOOKEEPER-4785", release{3, 9, 0}, release{3, 9, 2}},
	{"ZOOKEEPER-4712", release{3, 7, 0}, release{3, 9, 3}},
	{"ZOOKEEPER-4925", release{3, 9, 3}, release{3, 9, 4}},
}

// soundRelease is the first release that has none of the defects.
const soundRelease = "3.9.4"

// defectsOf returns the names of the defects that a version has.
func defectsOf(version string) (ids []string) {
	v, ok := parseRelease(version)
	if !ok {
		return nil
	}
	for _, d := range defects {
		if !v.before(d.from) && v.before(d.to) {
			ids = append(ids, d.id)
		}
	}
	return ids
}

// release is a version of ZooKeeper.
type release struct{ major, minor, patch int }

// parseRelease parses a version such as 3.8.0, and one with something behind it, such as 3.10.0-SNAPSHOT.
func parseRelease(version string) (r release, ok bool) {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return r, false
	}
	for i, n := range []*int{&r.major, &r.minor, &r.patch} {
		if i >= len(parts) {
			break
		}
		digits := parts[i]
		if end := strings.IndexFunc(digits, func(c rune) bool { return c < '0' || c > '9' }); end >= 0 {
			digits = digits[:end]
		}
		var err error
		if *n, err = strconv.Atoi(digits); err != nil {
			return release{}, false
		}
	}
	return r, true
}

func (r release) before(other release) bool {
	switch {
	case r.major != other.major:
		return r.major < other.major
	case r.minor != other.minor:
		return r.minor < other.minor
	}
	return r.patch < other.patch
}
