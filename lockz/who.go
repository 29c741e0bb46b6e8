package lockz

import (
	"net/netip"
	"regexp"

	"github.com/turnstile-go/turnstile/internal/nodedata"
)

// identified matches the id that this module writes into nodes by default.
var identified = regexp.MustCompile(`^[^/]+/[0-9]+$`)

// whoIs returns what the data of a node says about its contender, if it is the data that this module
// writes by default, or the address that Curator writes. Other data is a user's own, and may be
// secret.
func whoIs(data []byte) (id, label, traceparent string) {
	d := nodedata.Of(data)
	if d.JSON && identified.MatchString(d.ID) {
		return d.ID, d.Label, d.Traceparent
	}
	if addr, err := netip.ParseAddr(d.ID); !d.JSON && err == nil && addr.Zone() == "" {
		return addr.String(), "", ""
	}
	return "", "", ""
}
