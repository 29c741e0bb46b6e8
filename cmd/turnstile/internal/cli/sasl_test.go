package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
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
	run("--auth-file", file, "--acl", "creator").want(t, 0)
	run("--auth", "sasl:shop:se:cret", "--acl", "sasl:shop:cdrwa").want(t, 0)
	run("--auth", "sasl:shop:wrong").want(t, codeRefused)
	run("--auth", "sasl:shop:a", "--auth", "sasl:shop:b").want(t, codeUsage, "twice")
}

// If the command is killed, its guard closes the session by SASL too. The session would live for longer than the test waits.
func TestSASLRunKilled(t *testing.T) {
	t.Parallel()
	server := zktest.Start(t, zktest.SASLUser("shop", "secret"), zktest.RequireSASL(), zktest.MaxSessionTimeout(time.Hour))
	j := newJournal(t)
	p := start(t, server.Addr(), "run", "--timeout", "30m", "--auth", "sasl:shop:secret", "/locks/job", "--", "sh", "-c", j.once("A")+"; exec sleep 1000")
	j.await(t, "A")
	p.signal(t, syscall.SIGKILL)
	m := testserver.Connect(t, server.Addr(), session.WithSASL(session.DigestMD5("shop", "secret")))
	s := testserver.Session(t, m)
	zktest.Eventually(t, patience, "the release", func() bool {
		children, _, err := s.Children(t.Context(), "/locks/job")
		return err == nil && len(children) == 0 || errors.Is(err, zk.ErrNoNode)
	})
}
