package lockz

import (
	"encoding/json"
	"net/netip"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds on the data of other clients' nodes, in bytes.
const (
	maxData = 4096
	maxWord = 256
)

// identified matches the id that this module writes into nodes by default.
var identified = regexp.MustCompile(`^[^/]+/[0-9]+$`)

// whoIs returns what the data of a node says about its contender, if it is the data that this module
// writes by default, or the address that Curator writes. Other data is a user's own, and may be
// secret.
func whoIs(data []byte) (id, label, traceparent string) {
	if len(data) > maxData {
		return "", "", ""
	}
	if addr, err := netip.ParseAddr(string(data)); err == nil && addr.Zone() == "" {
		return addr.String(), "", ""
	}
	var node struct {
		ID          string `json:"id"`
		Label       string `json:"label"`
		Traceparent string `json:"traceparent"`
	}
	if json.Unmarshal(data, &node) != nil || !identified.MatchString(node.ID) {
		return "", "", ""
	}
	return shown(node.ID), shown(node.Label), shown(node.Traceparent)
}

// shown returns word if it is short and printable, and otherwise "".
func shown(word string) string {
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	if len(word) > maxWord || !utf8.ValidString(word) || strings.ContainsFunc(word, unprintable) {
		return ""
	}
	return word
}
