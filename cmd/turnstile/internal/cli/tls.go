package cli

import (
	"crypto/tls"
	"crypto/x509"
	"os"

	"github.com/spf13/pflag"
)

// tlsFlags have the names that users of etcdctl know. The guard of run gets them as JSON.
type tlsFlags struct {
	On, Insecure      bool
	CACert, Cert, Key string
	ServerName        string
}

func (t *tlsFlags) register(f *pflag.FlagSet) {
	f.BoolVar(&t.On, "tls", false, "connect with TLS, and verify servers by the system's certificates")
	f.StringVar(&t.CACert, "cacert", "", "connect with TLS, and verify servers by the certificates of this PEM `file`")
	f.StringVar(&t.Cert, "cert", "", "connect with TLS, and show servers the certificate of this PEM `file`")
	f.StringVar(&t.Key, "key", "", "PEM `file` with the private key for --cert")
	f.StringVar(&t.ServerName, "tls-server-name", "", "connect with TLS, and expect this `name` in the servers' certificates")
	f.BoolVar(&t.Insecure, "insecure-skip-tls-verify", false, "connect with TLS, and do not verify servers (for tests)")
}

// wanted says whether any flag asks for TLS.
func (t *tlsFlags) wanted() bool {
	return t.On || t.Insecure || t.CACert != "" || t.Cert != "" || t.Key != "" || t.ServerName != ""
}

func (t *tlsFlags) check() error {
	switch {
	case (t.Cert == "") != (t.Key == ""):
		return usagef("--cert and --key go together")
	case t.Insecure && t.CACert != "":
		return usagef("--cacert and --insecure-skip-tls-verify contradict each other")
	}
	return nil
}

// config returns the configuration, or nil for plain TCP.
func (t *tlsFlags) config() (*tls.Config, error) {
	if !t.wanted() {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: t.Insecure, ServerName: t.ServerName}
	if t.CACert != "" {
		pem, err := os.ReadFile(t.CACert)
		if err != nil {
			return nil, usagef("--cacert: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, usagef("--cacert %s: there is no PEM certificate in it", t.CACert)
		}
	}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, usagef("--cert and --key: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}
