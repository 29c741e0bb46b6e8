package main

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/exampletest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

// On a busy machine more ticks are left out.
var summary = regexp.MustCompile(`\n8 ticks, [1-8] reports, [0-7] ticks were left out, 0 were reported twice\n$`)

func TestOnce(t *testing.T) {
	for range 2 { // the second run goes on where the record of the first one ends
		var out bytes.Buffer
		if err := run(t.Context(), &out, exampletest.Server(t)); err != nil {
			t.Error(err)
		}
		if !summary.MatchString(out.String()) {
			t.Errorf("it says\n%s", out.String())
		}
		testserver.WaitChildren(t, jobPath+"/lock", 0)
	}
}

func TestEnds(t *testing.T) { exampletest.Ends(t, jobPath+"/lock", exampletest.ZK) }
