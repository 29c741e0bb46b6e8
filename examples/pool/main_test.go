package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/exampletest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

func TestPool(t *testing.T) {
	for range 2 { // the limit is back at the second run
		var out bytes.Buffer
		expect.NoError(t, run(t.Context(), &out, exampletest.Server(t)))
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if want := "10 workers were inside, on at most 3 places at once, and 5 in the end"; len(lines) != 2*workers+1 || lines[2*workers] != want {
			t.Fatalf("it says\n%s", out.String())
		}
		for _, line := range lines[:2*workers] {
			digits, rest, _ := strings.Cut(strings.TrimPrefix(line, "inside:"), "   places: ")
			var limit int
			expect.NoError(t, expect.Err(fmt.Sscan(rest, &limit)))
			if n := len(strings.Join(strings.FieldsFunc(digits, func(r rune) bool { return r == ' ' || r == '·' }), "")); n > limit {
				t.Errorf("%d places are taken of %d: %s", n, limit, line)
			}
		}
		testserver.WaitChildren(t, poolPath, 0)
	}
}

func TestEnds(t *testing.T) { exampletest.Ends(t, poolPath, exampletest.ZK) }
