package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Defaults of the flags.
const (
	defaultServers = "127.0.0.1:2181"
	defaultTimeout = 10 * time.Second
	defaultConnect = 5 * time.Second
)

// connectionFlags say how to reach the servers.
type connectionFlags struct {
	servers  string
	chroot   string
	timeout  time.Duration
	connect  time.Duration
	auths    []string
	authFile string
	tls      tlsFlags
}

// envPrefix begins the names of the environment variables that stand for flags.
const envPrefix = "TURNSTILE_"

// environmentOf returns the environment variable that stands for a flag of all commands.
func environmentOf(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// notFromEnvironment are the flags of all commands that no variable stands for.
var notFromEnvironment = []string{"help", "json", "verbose", "version"}

func (a *App) globalFlags(f *pflag.FlagSet) {
	c := &a.connection
	f.StringVar(&c.servers, "zk", defaultServers, "`servers` to connect to: host:port,host:port/chroot")
	f.StringVar(&c.chroot, "chroot", "", "`path` below which all nodes lie, if --zk does not name it")
	f.DurationVar(&c.timeout, "timeout", defaultTimeout, "session timeout to ask for")
	f.DurationVar(&c.connect, "connect-timeout", defaultConnect, "how long to try to open a session")
	f.StringArrayVar(&c.auths, "auth", nil, "identity, as `scheme:credentials`; may be given more than once. Prefer TURNSTILE_AUTH or --auth-file: other users of the machine can see arguments")
	f.StringVar(&c.authFile, "auth-file", "", "`file` with an identity on each line, as for --auth")
	c.tls.register(f)
	f.BoolVar(&a.JSON, "json", false, "print results, errors and the log as JSON")
	f.CountVarP(&a.verbose, "verbose", "v", "log connections; twice: everything")
}

// environment sets the flags of all commands from the environment, except those that the command
// line has.
func (a *App) environment(flags *pflag.FlagSet) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		v := a.Env(environmentOf(f.Name))
		if v == "" || f.Changed || slices.Contains(notFromEnvironment, f.Name) {
			return
		}
		// The value may be a secret, and is not printed.
		if flags.Set(f.Name, v) != nil {
			errs = append(errs, fmt.Errorf("environment variable %s: not a valid value for --%s", environmentOf(f.Name), f.Name))
		}
	})
	return errors.Join(errs...)
}

// connectString returns the servers with the chroot.
func (c *connectionFlags) connectString() string {
	return c.servers + strings.TrimSuffix(c.chroot, "/")
}

// check looks for errors that can be found before any I/O. Package session finds the others, also
// before any I/O.
func (c *connectionFlags) check() error {
	switch {
	case c.chroot != "" && !strings.HasPrefix(c.chroot, "/"):
		return usagef("--chroot %q does not begin with a slash", c.chroot)
	case c.chroot != "" && strings.Contains(c.servers, "/"):
		return usagef("two chroots: --chroot %q, and one in --zk %q", c.chroot, c.servers)
	case c.connect <= 0:
		return usagef("--connect-timeout %v is not positive", c.connect)
	}
	return c.tls.check()
}

// identity is one identity for the servers.
type identity struct {
	scheme     string
	credential []byte
}

// identities returns the identities of all flags. Its errors do not contain credentials.
func (c *connectionFlags) identities() ([]identity, error) {
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
// comments.
func parseIdentities(source, text string) ([]identity, error) {
	var all []identity
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		scheme, credential, ok := strings.Cut(line, ":")
		if !ok || scheme == "" || strings.ContainsAny(scheme, " \t") {
			return nil, usagef("%s, identity %d: want scheme:credentials, such as digest:user:password", source, n)
		}
		all = append(all, identity{scheme, []byte(credential)})
	}
	return all, nil
}
