package testserver

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A Release is the number of a release: 3.8.0.
type Release [3]int

// ParseRelease reads the number at the beginning of a text such as 3.8.0-1+deb12u1.
func ParseRelease(text string) (Release, error) {
	var r Release
	found := number.FindString(text)
	if found == "" {
		return r, fmt.Errorf("no release in %q", text)
	}
	for i, part := range strings.Split(found, ".") {
		r[i], _ = strconv.Atoi(part) // digits only
	}
	return r, nil
}

var number = regexp.MustCompile(`^\d{1,9}\.\d{1,9}(\.\d{1,9})?`)

func (r Release) String() string { return fmt.Sprintf("%d.%d.%d", r[0], r[1], r[2]) }

// Has reports whether the release has a change that first came with one of the others. Each of these
// is of another line, of which later releases have the change too. So have all lines above the last.
func (r Release) Has(first ...Release) bool {
	for _, f := range first {
		if r[0] == f[0] && r[1] == f[1] {
			return r[2] >= f[2]
		}
	}
	last := slices.MaxFunc(first, func(a, b Release) int { return slices.Compare(a[:], b[:]) })
	return slices.Compare(r[:], last[:]) > 0
}

var version struct {
	once sync.Once
	r    Release
	err  error
}

// Version returns the release of the shared server.
func Version(tb testing.TB) Release {
	tb.Helper()
	s := Server(tb)
	version.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		var text string
		if text, version.err = s.Word(ctx, 0, "srvr"); version.err != nil {
			return
		}
		_, number, _ := strings.Cut(text, "Zookeeper version: ")
		version.r, version.err = ParseRelease(number)
	})
	if version.err != nil {
		tb.Fatal(version.err)
	}
	return version.r
}

// HasContainers reports whether the shared server has container nodes, and so removes the directories of
// locks.
func HasContainers(tb testing.TB) bool {
	tb.Helper()
	return Version(tb).Has(Release{3, 5, 1})
}

// ExistsNeedsREAD reports whether the shared server tells only clients with the READ permission
// that a node exists (ZOOKEEPER-2590).
func ExistsNeedsREAD(tb testing.TB) bool {
	tb.Helper()
	return Version(tb).Has(Release{3, 8, 4}, Release{3, 9, 2})
}
