package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/ensemble"
)

// The report shows the shortest outage of all servers, for locks and for commands of run, which end a grace period earlier.
func TestCheckOutages(t *testing.T) {
	r := &ensemble.Report{Observed: 6 * time.Second, Servers: []ensemble.Server{
		{Granted: 10_000, Remaining: 5600}, {Error: "down"}, {Granted: 10_000, Remaining: 5400}, {Granted: 20_000, Remaining: 7000},
	}}
	for i := range r.Servers {
		r.Servers[i].Run = runRemaining(r.Servers[i])
	}
	var out bytes.Buffer
	(&App{Out: &out}).printReport(r)
	const want = `Outages: locks survive one of 5.4s, and commands of "turnstile run" one of 3.0s, as seen in 6s`
	if !strings.Contains(out.String(), want) {
		t.Errorf("%s\ndoes not contain %s", &out, want)
	}
}
