package main

import (
	"bytes"
	"context"
	"regexp"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/exampletest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zklock"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

// On a busy machine more ticks are left out.
var summary = regexp.MustCompile(`\n8 ticks, [1-8] reports, [0-7] ticks were left out, 0 were reported twice\n$`)

func TestOnce(t *testing.T) {
	for range 2 { // the second run goes on where the record of the first one ends
		var out bytes.Buffer
		if err := run(t.Context(), &out, testserver.Server(t).ConnectString()); err != nil {
			t.Error(err)
		}
		if !summary.MatchString(out.String()) {
			t.Errorf("it says\n%s", out.String())
		}
		testserver.WaitChildren(t, jobPath+"/lock", 0)
	}
}

// The code by hand, which the recipes count, skips while the job runs. It runs the job again for a timer that is late.
func TestByHand(t *testing.T) {
	ctx := t.Context()
	lock, err := zklock.New(testserver.Connect(t, testserver.Server(t).ConnectString()), "/schedule/by-hand")
	if err != nil {
		t.Fatal(err)
	}
	var runs int
	fire := func(inside func()) {
		t.Helper()
		err := fireByHand(ctx, lock, func(context.Context) error { runs++; inside(); return nil })
		if err != nil {
			t.Error(err)
		}
	}
	fire(func() { fire(func() {}) })
	if runs != 1 {
		t.Errorf("%d runs at once", runs)
	}
	if fire(func() {}); runs != 2 {
		t.Errorf("%d runs", runs)
	}
	testserver.WaitChildren(t, "/schedule/by-hand", 0)
}

func TestSIGTERM(t *testing.T) {
	exampletest.Stops(t, jobPath+"/lock", "-zk", testserver.Server(t).ConnectString())
}

func TestWrongServer(t *testing.T) { exampletest.WrongServer(t, exampletest.ZK) }
