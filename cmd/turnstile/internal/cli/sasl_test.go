package cli

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/turnstile-go/turnstile/zktest"
)

// With the identity sasl:user:password, the command works with servers that insist on SASL.
func TestSASL(t *testing.T) {
	t.Parallel()
	server := zktest.Start(t, zktest.SASLUser("shop", "se:cret"), zktest.RequireSASL())
	run := func(flags ...string) result {
		return call(context.Background(), []string{"TURNSTILE_ZK=" + server.Addr()}, append(append([]string{"run"}, flags...), "/locks/job", "--", "true")...)
	}
	file := filepath.Join(t.TempDir(), "auth")
	if err := os.WriteFile(file, []byte("sasl:shop:se:cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run("--auth-file", file).want(t, 0)
	run("--auth", "sasl:shop:se:cret").want(t, 0)
	run("--auth", "sasl:shop:wrong").want(t, codeRefused)
	run("--auth", "sasl:shop:a", "--auth", "sasl:shop:b").want(t, codeUsage, "twice")
}
