package main

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

func TestPlanWords(t *testing.T) {
	p := plan{kind: twoWrites, servers: "a:1,b:2", path: "/p", sessions: 1, workers: 2, leases: 3, locks: 4, every: 5, turns: 6, lazy: true, shared: true}
	var words []string
	for _, w := range planWords(p)[1:] {
		words = append(words, fmt.Sprint(w))
	}
	got, err := parsePlan(words)
	if err != nil || got != p {
		t.Errorf("%q is %+v, %v; want %+v", words, got, err, p)
	}
	for _, bad := range [][]string{nil, words[1:], append([]string{"mutex", "s", "/p", "x"}, words[4:]...)} {
		if _, err := parsePlan(bad); err == nil {
			t.Errorf("%q is a plan", bad)
		}
	}
}

// TestState has a team of ours in another process do all that the rows ask for.
func TestState(t *testing.T) {
	e, err := zktest.NewReal()
	if errors.Is(err, zktest.ErrNoZooKeeper) {
		testserver.Missing(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &oneRival{name: turnstileName}
	if err := r.startState(self, "this"); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx := t.Context()
	team, err := r.Open(ctx, plan{kind: mutex, servers: e.Addr(0), path: "/state", sessions: 2, workers: 3})
	if err != nil {
		t.Fatal(err)
	}
	stop, err := team.(watched).Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	o, err := team.Cycles(ctx, 2, time.Millisecond)
	if err != nil || len(o.cycles) != 6 || o.elapsed < 6*time.Millisecond {
		t.Errorf("six cycles are %+v, %v", o, err)
	}
	if err := team.Hold(ctx); err != nil {
		t.Fatal(err)
	}
	if o, err = team.Try(ctx, 3); err != nil || len(o.cycles) != 3 {
		t.Errorf("three tries are %+v, %v", o, err)
	}
	if err := team.Queue(ctx); err != nil {
		t.Fatal(err)
	}
	if o, err = team.Drain(ctx); err != nil || len(o.cycles) != 2 {
		t.Errorf("two waiters are %+v, %v", o, err)
	}
	if v := stop(); v.lost != 0 || v.left <= 0 {
		t.Errorf("the session's vitals are %+v", v)
	}
	if n, err := team.Memory(ctx); err != nil || n == 0 {
		t.Errorf("memory is %d, %v", n, err)
	}
	if d, err := team.Processor(ctx); err != nil || d <= 0 {
		t.Errorf("processor time is %v, %v", d, err)
	}
	if err := team.Close(); err != nil {
		t.Error(err)
	}
	if _, err := team.Try(ctx, 1); err == nil {
		t.Error("a team that was closed can try")
	}
}
