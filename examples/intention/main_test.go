package main

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/exampletest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out, testserver.Server(t).ConnectString()); err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`^60 transfers, at most \d+ at the same time\n15 audits, and each found the right sum\n$`)
	if !want.Match(out.Bytes()) {
		t.Errorf("it says\n%s", out.String())
	}
	testserver.WaitChildren(t, tablePath, 0)
}

func TestSIGTERM(t *testing.T) {
	exampletest.Stops(t, tablePath, "-zk", testserver.Server(t).ConnectString())
}

func TestWrongServer(t *testing.T) { exampletest.WrongServer(t, exampletest.ZK) }
