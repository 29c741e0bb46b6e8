// Package saslserver has real servers know one user, who logs in by SASL with the mechanism DIGEST-MD5.
package saslserver

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/turnstile-go/turnstile/zktest"
)

// Options returns the options of a server that knows the user, and serves clients that do not log in, too. The server
// reads a file in dir whenever it starts.
func Options(dir, user, password string) ([]zktest.RealOption, error) {
	file := filepath.Join(dir, "jaas.conf")
	text := fmt.Appendf(nil, "Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_%s=%q; };\n", user, password)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	return []zktest.RealOption{
		zktest.Property("authProvider.1", "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"),
		zktest.Property("fips-mode", "false"), // in which servers, from 3.9 on, do not know the mechanism
		zktest.Environ("JAVA_TOOL_OPTIONS", "-Djava.security.auth.login.config="+file),
	}, nil
}
