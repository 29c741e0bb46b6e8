package cli

import (
	"crypto/tls"
	"crypto/x509"
	"os"

	"github.com/spf13/pflag"
)

// tlsFlags have the names that users of etcdctl know.
type tlsFlags struct {
	on, insecure      bool
	cacert, cert, key string
	serverName        string
}

func (t *tlsFlags) register(f *pflag.FlagSet) {
	f.BoolVar(&t.on, "tls", false, "connect with TLS, and verify servers by the system's certificates")
	f.StringVar(&t.cacert, "cacert", "", "connect with TLS, and verify servers by the certificates of this PEM `file`")
	f.StringVar(&t.cert, "cert", "", "connect with TLS, and show servers the certificate of this PEM `file`")
	f.StringVar(&t.key, "key", "", "PEM `file` with the private key for --cert")
	f.StringVar(&t.serverName, "tls-server-name", "", "connect with TLS, and expect this `name` in the servers' certificates")
	f.BoolVar(&t.insecure, "insecure-skip-tls-verify", false, "connect with TLS, and do not verify servers (for tests)")
}

// wanted says whether any flag asks for TLS.
func (t *tlsFlags) wanted() bool {
	return t.on || t.insecure || t.cacert != "" || t.cert != "" || t.key != "" || t.serverName != ""
}

func (t *tlsFlags) check() error {
	switch {
	case (t.cert == "") != (t.key == ""):
		return usagef("--cert and --key go together")
	case t.insecure && t.cacert != "":
		return usagef("--cacert and --insecure-skip-tls-verify contradict each other")
	}
	return nil
}

// config returns the configuration, or nil for plain TCP.
func (t *tlsFlags) config() (*tls.Config, error) {
	if !t.wanted() {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: t.insecure, ServerName: t.serverName}
	if t.cacert != "" {
		pem, err := os.ReadFile(t.cacert)
		if err != nil {
			return nil, usagef("--cacert: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, usagef("--cacert %s: there is no PEM certificate in it", t.cacert)
		}
	}
	if t.cert != "" {
		pair, err := tls.LoadX509KeyPair(t.cert, t.key)
		if err != nil {
			return nil, usagef("--cert and --key: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}
