package testserver

import (
	"regexp"
	"strings"
	"testing"
)

// ErrorText is one error and the text that users see.
type ErrorText struct {
	Err  error
	Want string // with /a for the test's path, ID for a node's id, 0x1 for a session, "for 1s" for a time, and "since NOW"
}

var (
	nodeID    = regexp.MustCompile(`_c_[0-9a-f-]{36}-`)
	sessionID = regexp.MustCompile(`0x[0-9a-f]+`)
	duration  = regexp.MustCompile(` for [0-9.]+m?s\b`)
	moment    = regexp.MustCompile(` since 20[0-9T:-]+Z`)
)

// CheckTexts compares the whole texts of errors. dir is the test's path.
func CheckTexts(tb testing.TB, dir string, texts map[string]ErrorText) {
	tb.Helper()
	for what, c := range texts {
		if c.Err == nil {
			tb.Errorf("%s: no error", what)
			continue
		}
		got := strings.ReplaceAll(c.Err.Error(), dir, "/a")
		got = nodeID.ReplaceAllString(got, "_c_ID-")
		got = sessionID.ReplaceAllString(got, "0x1")
		got = duration.ReplaceAllString(got, " for 1s")
		got = moment.ReplaceAllString(got, " since NOW")
		if got != c.Want {
			tb.Errorf("%s: error\n%s, want\n%s", what, got, c.Want)
		}
	}
}
