package zktest

import (
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/zktest/internal/fourletter"
)

// The answers to envi and conf have the same keys in the same order as those of real servers.
func TestKeysOfWordsLikeReal(t *testing.T) {
	longtest.Only(t)
	for _, servers := range []int{1, 3} {
		real := StartReal(t, Servers(servers))
		ours := Start(t, versionOf(t, real), Servers(servers))
		for _, word := range []string{"envi", "conf"} {
			keys := func(addr string) string {
				text, err := fourletter.Ask(t.Context(), addr, word)
				if err != nil {
					t.Fatal(err)
				}
				var all []string
				for line := range strings.Lines(text) {
					key, _, _ := strings.Cut(line, "=")
					all = append(all, strings.TrimSuffix(key, "\n"))
				}
				return strings.Join(all, " ")
			}
			if got, want := keys(ours.ServerAddr(0)), keys(real.Addr(0)); got != want {
				t.Errorf("%s of %d servers:\nours: %s\nreal: %s", word, servers, got, want)
			}
		}
	}
}
