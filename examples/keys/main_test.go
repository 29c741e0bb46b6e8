package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/exampletest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zklock"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

func TestEachOnce(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out, exampletest.Server(t)); err != nil {
		t.Error(err)
	}
	if want := "300 requests in 3 replicas: 20 invoices, each charged once\n"; out.String() != want {
		t.Errorf("it says\n%s", out.String())
	}
	testserver.WaitChildren(t, dir+"/"+zklock.EscapePath("2026/0"), 0)
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, new(bytes.Buffer), exampletest.Server(t)); err == nil {
		t.Error("an interrupted run reports success")
	}
}

func TestWrongServer(t *testing.T) { exampletest.WrongServer(t, exampletest.ZK) }
