// Package saslserver has real servers know users, who log in by SASL with the mechanism DIGEST-MD5.
package saslserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/turnstile-go/turnstile/zktest"
)

var quoted = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// Options returns the options of a server that knows the users, with their passwords, and serves clients that do not log
// in, too. The server reads a file in dir whenever it starts.
func Options(dir string, users map[string]string) ([]zktest.RealOption, error) {
	var text strings.Builder
	text.WriteString("Server {\n  org.apache.zookeeper.server.auth.DigestLoginModule required")
	for user, password := range users {
		fmt.Fprintf(&text, "\n  user_%s=\"%s\"", user, quoted.Replace(password))
	}
	text.WriteString(";\n};\n")
	file := filepath.Join(dir, "jaas.conf")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		return nil, err
	}
	return []zktest.RealOption{
		zktest.Property("authProvider.1", "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"),
		zktest.Property("fips-mode", "false"), // in which servers, from 3.9 on, do not know the mechanism
		zktest.Environ("JAVA_TOOL_OPTIONS", "-Dfile.encoding=UTF-8 -Djava.security.auth.login.config="+file),
	}, nil
}
