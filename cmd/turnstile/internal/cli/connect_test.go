package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/authority"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// anyCommand is a command that connects.
func anyCommand(t *testing.T, flags ...string) []string {
	t.Helper()
	return append(append([]string{"run"}, flags...), testserver.Path(t), "--", "true")
}

// Errors name the server and the reason.
func TestConnectErrors(t *testing.T) {
	t.Parallel()
	secure, ca, _ := startTLS(t, testserver.Server(t).Addr(0))
	for what, c := range map[string]struct {
		flags []string
		texts []string
	}{
		"refused": {[]string{"--zk", "127.0.0.1:1"}, []string{"127.0.0.1:1", "connection refused"}},
		"unknown": {[]string{"--zk", "no..host:2181"}, []string{"no..host", "no such host"}},
		"TLS, unknown authority": {[]string{"--zk", secure, "--cacert", authority.New(t, "another").File(t)},
			[]string{secure, "signed by unknown authority"}},
		"TLS, other name": {[]string{"--zk", secure, "--cacert", ca, "--tls-server-name", "zk.example.com"},
			[]string{secure, "failed to verify certificate", "zk.example.com"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			// On a busy machine the first attempt can take long, and the error says so.
			bound, got := "500ms", result{}
			for _, bound = range []string{"500ms", "3s", "20s"} {
				got = call(t.Context(), nil, anyCommand(t, append(c.flags, "--connect-timeout", bound)...)...)
				if strings.Contains(got.err, c.texts[1]) {
					break
				}
			}
			got.want(t, codeConnect, append(c.texts, "within "+bound)...)
		})
	}
}

// Identities come from the command line, the environment or a file. Without one, or with a wrong
// one, the servers refuse.
func TestAuth(t *testing.T) {
	t.Parallel()
	path := testserver.Path(t)
	acl := append(zk.DigestACL(zk.PermAll, "user", "pass:word"), zk.DigestACL(zk.PermAll, "other", "secret")...)
	expect.NoError(t, expect.Err(testserver.Admin(t).Create(path, nil, 0, acl)))
	file := filepath.Join(t.TempDir(), "auth")
	if err := os.WriteFile(file, []byte("\ufeffdigest:nobody:x\r\n# identities\r\n\r\ndigest:user:pass:word\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	servers := "TURNSTILE_ZK=" + testserver.Server(t).ConnectString()
	run := func(env string, flags ...string) result {
		return call(t.Context(), []string{servers, env}, append(append([]string{"run"}, flags...), path, "--", "true")...)
	}
	run("").want(t, codeRefused)
	run("", "--auth", "digest:user:wrong").want(t, codeRefused)
	run("", "--auth", "nonsense:secret").want(t, codeRefused, "nonsense")
	run("", "--auth", "digest:user:pass:word").want(t, 0)
	run("", "--auth", "digest:nobody:x", "--auth", "digest:other:secret").want(t, 0)
	run("", "--auth-file", file).want(t, 0)
	run("TURNSTILE_AUTH=digest:nobody:x\ndigest:other:secret").want(t, 0)
	run("TURNSTILE_AUTH_FILE="+file).want(t, 0)
	for _, flags := range [][]string{{"--auth="}, {"--auth", "digest:user:pass:word", "--auth-file", os.DevNull}, {"--auth-file", os.DevNull}} {
		run("", flags...).want(t, codeUsage, "no identity in it")
	}
	for _, got := range []result{run("", "--auth", "secret"), run("TURNSTILE_AUTH=secret")} {
		got.want(t, codeUsage, "scheme:credentials")
		if strings.Contains(got.err, "secret") {
			t.Errorf("the error has the secret: %s", got.err)
		}
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	secure, ca, key := startTLS(t, testserver.Server(t).Addr(0))
	call(t.Context(), nil, anyCommand(t, "--zk", secure, "--cacert", ca, "--cert", key, "--key", key)...).want(t, 0)
	call(t.Context(), nil, anyCommand(t, "--zk", secure, "--cert", ca, "--key", ca)...).want(t, codeUsage, "--cert")
	call(t.Context(), nil, anyCommand(t, "--zk", secure, "--cacert", os.DevNull)...).want(t, codeUsage, "no PEM certificate")
}

// startTLS starts a server that speaks TLS, demands a certificate of its clients, and hands all on to another server. It
// returns its address, a file with the certificate of the authority, and one with the client's certificate and key.
func startTLS(t *testing.T, target string) (addr, caFile, keyFile string) {
	t.Helper()
	ours := authority.New(t, "ours")
	return ours.Front(t, target), ours.File(t), authority.KeyFile(t, ours.Issue(t, "client", time.Now().Add(time.Hour)))
}

// With the identity sasl:user:password, the command works with servers that insist on SASL.
func TestSASL(t *testing.T) {
	t.Parallel()
	server := zktest.Start(t, zktest.SASLUser("shop", "se:cret"), zktest.RequireSASL())
	run := func(flags ...string) result {
		return call(context.Background(), []string{"TURNSTILE_ZK=" + server.Addr()}, append(append([]string{"run"}, flags...), "/locks/job", "--", "true")...)
	}
	file := filepath.Join(t.TempDir(), "auth")
	expect.NoError(t, os.WriteFile(file, []byte("sasl:shop:se:cret\n"), 0o600))
	run("--auth-file", file).want(t, 0)
	run("--auth", "sasl:shop:se:cret").want(t, 0)
	run("--auth", "sasl:shop:wrong").want(t, codeRefused)
	run("--auth", "sasl:shop:a", "--auth", "sasl:shop:b").want(t, codeUsage, "twice")
}
