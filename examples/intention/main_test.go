package main

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/exampletest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

func TestRun(t *testing.T) {
	var out bytes.Buffer
	expect.NoError(t, run(t.Context(), &out, testserver.Server(t).ConnectString()))
	want := regexp.MustCompile(`^60 transfers, at most \d+ at the same time\n15 audits, and each found the right sum\n$`)
	if !want.Match(out.Bytes()) {
		t.Errorf("it says\n%s", out.String())
	}
	testserver.WaitChildren(t, tablePath, 0)
}

func TestEnds(t *testing.T) { exampletest.Ends(t, tablePath, exampletest.ZK) }
