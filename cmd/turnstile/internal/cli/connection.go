package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/pflag"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
	"github.com/turnstile-go/turnstile/session"
)

// connection says how to reach the servers. Its flags have the names that users of etcdctl know.
type connection struct {
	servers          string
	timeout, connect time.Duration
	auths            []string
	authFile         string
	tls              tlsFlags
	given            []*pflag.Flag // those that the command line has
}

// tlsFlags are given to the guard of run as JSON.
type tlsFlags struct {
	On                bool
	CACert, Cert, Key string
	ServerName        string
}

func (a *App) globalFlags(f *pflag.FlagSet) {
	c := &a.connection
	f.StringVar(&c.servers, "zk", "127.0.0.1:2181", "`servers`: host:port,host:port/chroot")
	f.DurationVar(&c.timeout, "timeout", 10*time.Second, "session timeout to ask for")
	f.DurationVar(&c.connect, "connect-timeout", 5*time.Second, "how long to try to open a session")
	f.StringArrayVar(&c.auths, "auth", nil, "identity, as `scheme:credentials`; others see it in ps")
	f.StringVar(&c.authFile, "auth-file", "", "`file` with an identity on each line")
	f.BoolVar(&c.tls.On, "tls", false, "use TLS, with the system's certificates")
	f.StringVar(&c.tls.CACert, "cacert", "", "use TLS, with the authorities of this PEM `file`")
	f.StringVar(&c.tls.Cert, "cert", "", "use TLS, and show servers the certificate of this PEM `file`")
	f.StringVar(&c.tls.Key, "key", "", "PEM `file` with the private key for --cert")
	f.StringVar(&c.tls.ServerName, "tls-server-name", "", "use TLS, and expect this `name` in the servers' certificates")
	f.BoolVar(&a.json, "json", false, "print results, errors and the log as JSON")
	f.CountVarP(&a.verbose, "verbose", "v", "log connections; twice: everything")
}

const environmentHelp = `For each flag of all commands there is an environment variable: TURNSTILE_ and the name of
the flag in capitals, with underscores, such as TURNSTILE_ZK for --zk and
TURNSTILE_CONNECT_TIMEOUT for --connect-timeout. A flag on the command line has precedence.

TURNSTILE_AUTH has one identity on each line, as scheme:credentials. Unlike the arguments of
a process, its environment is hidden from other users of the machine. The command of
"turnstile run" inherits the environment.`

// environment sets the flags of all commands from the environment, except those that the command line has.
func (a *App) environment(flags *pflag.FlagSet) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		variable := "TURNSTILE_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		v := a.Env(variable)
		switch {
		case f.Changed:
			a.connection.given = append(a.connection.given, f)
		case v != "" && f.Name != "help" && f.Name != "version" && flags.Set(f.Name, v) != nil:
			// The value may be a secret, and is not printed.
			errs = append(errs, fmt.Errorf("environment variable %s: not a valid value for --%s", variable, f.Name))
		}
	})
	return errors.Join(errs...)
}

// again returns a command line with words, and with the flags of this one that say how to reach the servers. It is for
// hints, so it has no secrets.
func (a *App) again(words ...string) string {
	line := []string{"turnstile"}
	for _, f := range a.connection.given {
		switch f.Name {
		case "json", "verbose":
		case "auth":
			line = append(line, "--auth ...")
		case "tls":
			line = append(line, "--tls")
		default:
			line = append(line, "--"+f.Name, shellWord(f.Value.String()))
		}
	}
	for _, w := range words {
		line = append(line, shellWord(w))
	}
	return strings.Join(line, " ")
}

// identity is one identity for the servers. The scheme sasl is proved by SASL, with DIGEST-MD5: sasl:user:password.
type identity struct {
	Scheme     string
	Credential []byte
}

// identities returns the identities of all flags. Its errors do not contain credentials.
func (c *connection) identities() ([]identity, error) {
	all, err := parseIdentities("--auth", strings.Join(c.auths, "\n"))
	if err != nil || c.authFile == "" {
		return all, err
	}
	text, err := os.ReadFile(c.authFile)
	if err != nil {
		return nil, usagef("--auth-file: %w", err)
	}
	more, err := parseIdentities("--auth-file "+c.authFile, string(text))
	if err == nil && len(more) == 0 {
		err = usagef("--auth-file %s: there is no identity in it", c.authFile)
	}
	return append(all, more...), err
}

// parseIdentities reads lines of scheme:credentials. Empty lines, and those that begin with #, are
// comments. Editors of Windows put a byte order mark in front, and a carriage return behind each line.
func parseIdentities(source, text string) ([]identity, error) {
	var all []identity
	n := 0
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		n++
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		scheme, credential, ok := strings.Cut(line, ":")
		if !ok || scheme == "" || strings.ContainsAny(scheme, " \t") {
			return nil, usagef("%s, line %d: want scheme:credentials, such as digest:user:password", source, n)
		}
		all = append(all, identity{scheme, []byte(credential)})
	}
	return all, nil
}

// name is the identity without its secret.
func (i identity) name() string {
	if i.Scheme != "digest" && i.Scheme != "sasl" {
		return i.Scheme
	}
	user, _, _ := strings.Cut(string(i.Credential), ":")
	return i.Scheme + ":" + user
}

// config returns the configuration, or nil for plain TCP.
func (t *tlsFlags) config() (*tls.Config, error) {
	if *t == (tlsFlags{}) {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
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

// options returns the options that the flags ask for, without TLS, and the configuration of TLS.
func (a *App) options() (opts []session.Option, cfg *tls.Config, err error) {
	c := &a.connection
	opts = []session.Option{session.WithTimeout(c.timeout), session.WithLogger(a.log)}
	identities, err := c.identities()
	if err != nil {
		return nil, nil, err
	}
	for _, i := range identities {
		if i.Scheme == "sasl" {
			user, password, _ := strings.Cut(string(i.Credential), ":")
			opts = append(opts, session.WithSASL(session.DigestMD5(user, password)))
		} else {
			opts = append(opts, session.WithAuth(i.Scheme, i.Credential))
		}
	}
	cfg, err = c.tls.config()
	return opts, cfg, err
}

// secure is options with TLS.
func (a *App) secure() ([]session.Option, error) {
	opts, cfg, err := a.options()
	if cfg != nil {
		opts = append(opts, session.WithTLS(cfg))
	}
	return opts, err
}

// tree opens a session as the flags say, within --connect-timeout. The caller must close the manager.
func (a *App) tree(ctx context.Context) (*locks.Tree, *session.Manager, error) {
	opts, err := a.secure()
	if err != nil {
		return nil, nil, err
	}
	m, err := a.connect(ctx, opts...)
	if err != nil {
		return nil, nil, err
	}
	return locks.NewTree(m, a.connection.connect), m, nil
}

// connect opens a session with some options, within --connect-timeout. An error has its exit status already.
func (a *App) connect(ctx context.Context, opts ...session.Option) (*session.Manager, error) {
	limited, cancel := context.WithTimeout(ctx, a.connection.connect)
	defer cancel()
	begun := time.Now()
	m, err := session.Connect(limited, a.connection.servers, opts...)
	switch {
	case err == nil:
		return m, nil
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, context.Cause(ctx)
	case errors.Is(err, session.ErrInvalid):
		return nil, usageError(err)
	case errors.Is(err, zk.ErrAuthFailed):
		return nil, withCode(codeRefused, err)
	}
	within := a.connection.connect
	if ctx.Err() != nil { // the time of run --wait is over
		within = time.Since(begun).Round(time.Millisecond)
	}
	return nil, withCode(codeConnect, fmt.Errorf("no session with %s within %v: %w", a.connection.servers, within, lastCause(err)))
}

// lastCause returns why the last attempt to connect has failed. An error of session.Connect joins it
// to the error of the context, if there was a failure.
func lastCause(err error) error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if both, ok := e.(interface{ Unwrap() []error }); ok {
			all := both.Unwrap()
			return all[len(all)-1]
		}
	}
	return errors.New("no server has answered")
}

// identityText says who this client is for the servers, and how to be another one.
func (a *App) identityText() string {
	identities, _ := a.connection.identities()
	var names []string
	for _, i := range identities {
		names = append(names, clean(i.name()))
	}
	switch {
	case len(names) > 0:
		return "Its identity is " + strings.Join(slices.Compact(names), " and ") + ": see --auth and --auth-file"
	case a.connection.tls.Cert != "":
		return "Its certificate is that of --cert, and it has no other identity: see --auth and --auth-file"
	}
	return "It has no identity: see --auth and --auth-file"
}
