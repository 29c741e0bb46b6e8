package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/testserver"
)

// TestMain lets the test binary be the processes that run starts.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-work") {
		main()
		return
	}
	testserver.Main(m)
}

func TestEveryNumberOnce(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out, testserver.Server(t).ConnectString()); err != nil {
		t.Error(err)
	}
	if want := "3 processes, 60 numbers, 60 different\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("it says\n%s", out.String())
	}
	testserver.WaitChildren(t, "/locker/invoices", 0)
}
