package saslkrb5_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

const realm = "TURNSTILE.TEST"

// kdc is a KDC of Debian's package krb5-kdc, in a directory and on a port of its own.
type kdc struct {
	dir, conf string // conf is krb5.conf
	env       []string
	proc      *exec.Cmd
	said      *bytes.Buffer
}

// tool returns the path of a program of Kerberos. The test is skipped, or fails in continuous integration, if it is missing.
func tool(t *testing.T, name string) string {
	t.Helper()
	for _, dir := range []string{"/usr/sbin", "/usr/bin"} {
		if path := filepath.Join(dir, name); exec.Command("test", "-x", path).Run() == nil {
			return path
		}
	}
	if os.Getenv(zktest.RequireEnv) != "" {
		t.Fatalf("no %s: see make deps", name)
	}
	t.Skipf("no %s: see make deps", name)
	return ""
}

func startKDC(t *testing.T) *kdc {
	t.Helper()
	k := &kdc{dir: t.TempDir()}
	tool(t, "krb5kdc")
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	addr := l.Addr().String()
	must(t, l.Close())
	k.conf = k.write(t, "krb5.conf", fmt.Sprintf(`[libdefaults]
  default_realm = %[1]s
  dns_lookup_kdc = false
  dns_lookup_realm = false
  rdns = false
  udp_preference_limit = 1
[realms]
  %[1]s = {
    kdc = %[2]s
  }
`, realm, addr))
	profile := k.write(t, "kdc.conf", fmt.Sprintf(`[kdcdefaults]
  kdc_listen = %[2]s
  kdc_tcp_listen = %[2]s
[realms]
  %[1]s = {
    database_name = %[3]s/principal
    key_stash_file = %[3]s/stash
    acl_file = %[3]s/acl
    supported_enctypes = aes256-cts-hmac-sha1-96:normal aes128-cts-hmac-sha1-96:normal
  }
[logging]
  kdc = FILE:%[3]s/kdc.log
`, realm, addr, k.dir))
	k.env = append(os.Environ(), "KRB5_CONFIG="+k.conf, "KRB5_KDC_PROFILE="+profile)
	k.run(t, "kdb5_util", "create", "-s", "-r", realm, "-P", "master")
	k.start(t, addr)
	return k
}

func (k *kdc) start(t *testing.T, addr string) {
	t.Helper()
	k.proc, k.said = exec.Command(tool(t, "krb5kdc"), "-n", "-r", realm), new(bytes.Buffer)
	k.proc.Env, k.proc.Stdout, k.proc.Stderr = k.env, k.said, k.said
	must(t, k.proc.Start())
	t.Cleanup(k.stop)
	zktest.Eventually(t, 20*time.Second, "a KDC at "+addr, func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

func (k *kdc) stop() {
	if k.proc != nil {
		_ = k.proc.Process.Kill()
		_ = k.proc.Wait()
		k.proc = nil
	}
}

func (k *kdc) write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(k.dir, name)
	must(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func (k *kdc) run(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(tool(t, name), args...)
	cmd.Env = k.env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// keytab makes a principal, or new keys for it, and returns a file with its keys.
func (k *kdc) keytab(t *testing.T, principal string) string {
	t.Helper()
	file := filepath.Join(k.dir, strings.ReplaceAll(principal, "/", "-")+".keytab")
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		k.run(t, "kadmin.local", "-r", realm, "-q", "addprinc -randkey "+principal)
	}
	k.run(t, "kadmin.local", "-r", realm, "-q", "ktadd -k "+file+" "+principal)
	return file
}

// cache logs a principal in, and returns its credential cache.
func (k *kdc) cache(t *testing.T, principal, keytab string) string {
	t.Helper()
	file := filepath.Join(k.dir, principal+".cache")
	k.run(t, "kinit", "-c", "FILE:"+file, "-k", "-t", keytab, principal)
	return file
}

// zookeeper starts a real server that knows its clients by Kerberos, and wants to.
func (k *kdc) zookeeper(t *testing.T) (server string) {
	t.Helper()
	jaas := k.write(t, "jaas.conf", fmt.Sprintf(`Server {
  com.sun.security.auth.module.Krb5LoginModule required
  useKeyTab=true storeKey=true useTicketCache=false
  keyTab="%s" principal="zookeeper/localhost@%s";
};
`, k.keytab(t, "zookeeper/localhost"), realm))
	e := zktest.StartReal(t, zktest.Property("authProvider.1", "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"),
		zktest.Environ("JAVA_TOOL_OPTIONS", fmt.Sprintf("-Djava.security.krb5.conf=%s -Djava.security.auth.login.config=%s "+
			"-Dzookeeper.sessionRequireClientSASLAuth=true", k.conf, jaas)))
	_, port, err := net.SplitHostPort(e.Addr(0))
	must(t, err)
	return "localhost:" + port
}

func TestMain(m *testing.M) { testserver.Main(m) }
