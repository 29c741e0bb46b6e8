package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
	"github.com/turnstile-go/turnstile/session"
)

// connection says how to reach the servers. Its flags have the names that users of etcdctl know. The guard of run gets it
// as JSON.
type connection struct {
	Servers           string
	Timeout, Connect  time.Duration
	Auths             []string
	AuthFile          string
	TLS               bool
	CACert, Cert, Key string
	ServerName        string
}

func (a *App) globalFlags(f *pflag.FlagSet) {
	c := &a.connection
	f.StringVar(&c.Servers, "zk", "127.0.0.1:2181", "`servers`: host:port,host:port/chroot")
	f.DurationVar(&c.Timeout, "timeout", 10*time.Second, "session timeout to ask for")
	f.DurationVar(&c.Connect, "connect-timeout", 5*time.Second, "how long to try to open a session")
	f.StringArrayVar(&c.Auths, "auth", nil, "identity, as `scheme:credentials`; others see it in ps")
	f.StringVar(&c.AuthFile, "auth-file", "", "`file` with an identity on each line")
	f.BoolVar(&c.TLS, "tls", false, "use TLS, with the system's certificates")
	f.StringVar(&c.CACert, "cacert", "", "use TLS, with the authorities of this PEM `file`")
	f.StringVar(&c.Cert, "cert", "", "use TLS, and show servers the certificate of this PEM `file`")
	f.StringVar(&c.Key, "key", "", "PEM `file` with the private key for --cert")
	f.StringVar(&c.ServerName, "tls-server-name", "", "use TLS, and expect this `name` in the servers' certificates")
	f.CountVarP(&a.verbose, "verbose", "v", "log connections; twice: everything")
}

// environment sets the flags of all commands from the environment, except those that the command line has.
func (a *App) environment(flags *pflag.FlagSet) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		variable := "TURNSTILE_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		v := a.Env(variable)
		if !f.Changed && v != "" && f.Name != "help" && f.Name != "version" && flags.Set(f.Name, v) != nil {
			// The value may be a secret, and is not printed.
			errs = append(errs, fmt.Errorf("environment variable %s: not a valid value for --%s", variable, f.Name))
		}
	})
	return errors.Join(errs...)
}

// again returns a command line for hints, with the servers if this one names them.
func (a *App) again(words ...string) string {
	line := "turnstile"
	if slices.ContainsFunc(a.args, func(arg string) bool { return arg == "--zk" || strings.HasPrefix(arg, "--zk=") }) {
		line += " --zk " + shellWord(a.connection.Servers)
	}
	for _, w := range words {
		line += " " + shellWord(w)
	}
	return line
}

// identities returns the identities of all flags. A flag without one is an error: a variable of a script may be empty. The
// scheme sasl is proved by SASL, with DIGEST-MD5: sasl:user:password. Errors do not contain credentials. Empty lines, and those
// that begin with #, are comments. Editors of Windows put a byte order mark in front, and a carriage return behind each line.
func (c *connection) identities() (all []session.Option, err error) {
	texts := c.Auths
	if c.AuthFile != "" {
		file, err := os.ReadFile(c.AuthFile)
		if err != nil {
			return nil, usagef("--auth-file: %w", err)
		}
		texts = append(slices.Clone(texts), strings.TrimPrefix(string(file), "\ufeff"))
	}
	for _, text := range texts {
		before := len(all)
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\r\n")
			if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
				continue
			}
			scheme, credential, ok := strings.Cut(line, ":")
			if !ok || scheme == "" || strings.ContainsAny(scheme, " \t") {
				return nil, usagef("identity %d of --auth and --auth-file: want scheme:credentials, such as digest:user:password", len(all)+1)
			}
			identity := session.WithAuth(scheme, []byte(credential))
			if scheme == "sasl" {
				user, password, _ := strings.Cut(credential, ":")
				identity = session.WithSASL(session.DigestMD5(user, password))
			}
			all = append(all, identity)
		}
		if len(all) == before {
			return nil, usagef("behind %d good ones, an --auth or the file of --auth-file has no identity in it", before)
		}
	}
	return all, nil
}

// tls returns the configuration, or nil for plain TCP.
func (c *connection) tls() (*tls.Config, error) {
	if !c.TLS && c.CACert+c.Cert+c.ServerName == "" {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName}
	if c.CACert != "" {
		pem, err := os.ReadFile(c.CACert)
		if err != nil {
			return nil, usagef("--cacert: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, usagef("--cacert %s: there is no PEM certificate in it", c.CACert)
		}
	}
	if c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, usagef("--cert and --key: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// options returns the options that the flags ask for.
func (c *connection) options(log *slog.Logger) ([]session.Option, error) {
	opts, err := c.identities()
	if err != nil {
		return nil, err
	}
	opts = append(opts, session.WithTimeout(c.Timeout), session.WithLogger(log))
	cfg, err := c.tls()
	if cfg != nil {
		opts = append(opts, session.WithTLS(cfg))
	}
	return opts, err
}

// onTree is onPath for a command that has a session.
func (a *App) onTree(cmd *cobra.Command, root bool, do func(ctx context.Context, t *locks.Tree, path string) error) *cobra.Command {
	return onPath(cmd, root, func(ctx context.Context, p string) error {
		m, err := a.connect(ctx)
		if err != nil {
			return err
		}
		defer m.Close()
		return a.plain(clean(p), do(ctx, locks.NewTree(m), p))
	})
}

// connect opens a session as the flags say, with more options, within --connect-timeout. An error has its exit status already.
func (a *App) connect(ctx context.Context, more ...session.Option) (*session.Manager, error) {
	opts, err := a.connection.options(a.log)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, a.connection.Connect)
	defer cancel()
	begun := time.Now()
	m, err := session.Connect(limited, a.connection.Servers, append(opts, more...)...)
	switch {
	case err == nil:
		return m, nil
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, context.Cause(ctx)
	case errors.Is(err, session.ErrInvalid):
		return nil, withCode(codeUsage, err)
	case errors.Is(err, zk.ErrAuthFailed):
		return nil, withCode(codeRefused, err)
	}
	within := a.connection.Connect
	if ctx.Err() != nil { // the time of run --wait is over
		within = time.Since(begun).Round(time.Millisecond)
	}
	return nil, withCode(codeConnect, fmt.Errorf("no session with %s within %v: %w", a.connection.Servers, within, err))
}
