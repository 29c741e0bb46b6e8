package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/exampletest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

func TestMain(m *testing.M) { exampletest.Main(m, main, "-work") }

func TestEveryNumberOnce(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out, exampletest.Server(t)); err != nil {
		t.Error(err)
	}
	if want := "3 processes, 60 numbers, 60 different\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("it says\n%s", out.String())
	}
	testserver.WaitChildren(t, "/locker/invoices", 0)
}

func TestEnds(t *testing.T) { exampletest.Ends(t, "/locker/invoices", exampletest.ZK) }
