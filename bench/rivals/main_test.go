package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// TestMain lets the test binary be the processes that run starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (slices.Contains([]string{delayCommand, readCommand, serveCommand}, os.Args[1])) {
		main()
		return
	}
	testserver.Main(m)
}

// TestQuick runs every row for the rivals that are written in Go; -quick runs all rivals.
func TestQuick(t *testing.T) {
	var out, messages bytes.Buffer
	err := run(t.Context(), []string{"-quick", "-rivals", "zk.Lock,limit"}, &out, &messages)
	if errors.Is(err, zktest.ErrNoZooKeeper) {
		testserver.Missing(t, err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, &messages)
	}
	for _, r := range rows(quick) {
		for _, m := range r.metrics {
			line := fmt.Sprintf("| %s | %s | ", strings.TrimSuffix(r.title+": "+m.name, ": "), r.net)
			_, rest, found := strings.Cut(out.String(), line)
			// In so few rounds there may have been no waiter at any release.
			if !found || strings.HasPrefix(rest, "–") && r.key != "gap" {
				t.Errorf("no number in the row %q", line)
			}
		}
	}
	for _, want := range []string{"zk.Lock: go-zookeeper has a mutex alone", "| requests, uncontended: 3 (create, getChildren, delete), and what watches the own node | 3.",
		"| requests of the same lock again and again, 1 ms hold: writes | counted | 0.00 | 2.00 | 2.00 |",
		"| the same lock again and again: 0 requests | 0.00 | met |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if t.Failed() {
		t.Log(&out)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, args := range []string{
		"-rivals nobody", "-rivals turnstile", "-rounds -1", "-rows (", "-write -quick", "-write -rows handover", "-write -rivals kazoo", "-write -before HEAD", "-guard -quick", "-guard -rows handover -rounds 1", "more",
	} {
		if _, err := parse(strings.Fields(args), io.Discard); err == nil {
			t.Errorf("%s: no error", args)
		}
	}
	if err := run(t.Context(), []string{"-rows", "no such row"}, io.Discard, io.Discard); err == nil {
		t.Error("a run of no rows is no error")
	}
}

func TestParseDefaults(t *testing.T) {
	o, err := parse([]string{"-write"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if o.page == "" || len(o.rivals) != len(names)-1 || o.size != full || len(o.chosen()) != len(rows(full)) {
		t.Errorf("-write is %+v", o)
	}
	if o, err = parse([]string{"-rivals", "", "-rows", "handover-10 .*1 ms hold, 1 ms"}, io.Discard); err != nil {
		t.Fatal(err)
	}
	if chosen := o.chosen(); len(o.rivals) != 2 || len(chosen) != 1 || chosen[0].plan.sessions != 10 {
		t.Errorf("the rows chosen are %v of %q", chosen, o.rivals)
	}
	if o, err = parse([]string{"-guard", "-rounds", "2"}, io.Discard); err != nil {
		t.Fatal(err)
	}
	if chosen := o.chosen(); len(o.rivals) != 4 || len(chosen) != 4 || o.size.rounds != 2 {
		t.Errorf("-guard runs %v of %q", chosen, o.rivals)
	}
}

func TestGuard(t *testing.T) {
	ran := func(own, writes, handovers float64) (all results) {
		for _, r := range rows(full) {
			var values map[string][][]float64
			switch r.key {
			case "uncontended": // a median and a p99
				values = map[string][][]float64{turnstileName: {{own}, {own}}, limitName: {{writes}, {writes}}}
			case "handover-10":
				values = map[string][][]float64{turnstileName: {{handovers}}, zkLockName: {{100}}}
			default:
				continue
			}
			all = append(all, result{row: r, values: values})
		}
		return all
	}
	for _, test := range []struct {
		all results
		ok  bool
	}{{ran(1.2, 1, 150), true}, {ran(1.8, 1, 150), false}, {ran(1.2, 1, 80), false}, {nil, false}} {
		if err := test.all.guard(io.Discard); (err == nil) != test.ok {
			t.Errorf("guard of %v: %v", test.all, err)
		}
	}
}
