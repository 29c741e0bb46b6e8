package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/exampletest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

func TestMain(m *testing.M) { exampletest.Main(m, main, "-candidate") }

func TestTerms(t *testing.T) {
	longtest.Only(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var out exampletest.Buffer
	if err := demo(ctx, &out, exampletest.Server(t)); err != nil {
		t.Error(err)
	}
	text := out.String()
	t.Log("\n" + text)
	var last int64
	for line := range strings.Lines(text) {
		var name string
		var term int64
		if _, err := fmt.Sscanf(line, "%s leads, in term %d", &name, &term); err != nil {
			continue
		}
		if term <= last {
			t.Errorf("term %d comes after %d", term, last)
		}
		last = term
	}
	for what, least := range map[string]int{
		" leads, in term ":         4,
		" has lost the leadership": 1,
		" resigns":                 2,
	} {
		if n := strings.Count(text, what); n < least {
			t.Errorf("%d times %q, want %d", n, what, least)
		}
	}
	testserver.WaitChildren(t, electionPath, 0)
}

// A leader that cannot do its work ends, and leaves the leadership to others.
func TestUnfit(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testserver.Bound())
	defer cancel()
	m := testserver.Connect(t, exampletest.Server(t))
	// It cannot write the office, because there is none.
	if err := (&candidate{name: "Dave", m: m, out: io.Discard}).run(ctx); !errors.Is(err, zk.ErrNoNode) {
		t.Errorf("it ends with %v", err)
	}
	testserver.WaitChildren(t, electionPath, 0)
}

func TestEnds(t *testing.T) { exampletest.Ends(t, electionPath, exampletest.ZK) }
