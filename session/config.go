package session

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/dial"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/internal/wire"
)

// config is the result of all options.
type config struct {
	named    string // the connect string
	servers  []dial.Server
	chroot   string // "" if there is none
	noServer error  // if the connect string names none

	timeout, margin, tick  time.Duration // a margin or a tick of 0 is not told
	maxNodes, maxNodeBytes int
	lossOnSuspend          bool

	waits   rounds.Backoff // to be copied
	auths   []codec.Identity
	sasl    *wire.SASL // nil: none
	acl     []zk.ACL
	tls     *tls.Config
	dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	resolve func(ctx context.Context) ([]string, error)
	log     *slog.Logger
	lines   *logLines // of log
	traces  []Trace
}

func defaults(servers string) (*config, error) {
	c := &config{
		named: servers, timeout: 10 * time.Second, maxNodes: 8192, maxNodeBytes: 1 << 20, log: slog.Default(), acl: zk.WorldACL(zk.PermAll),
	}
	var err error
	c.servers, c.chroot, err = dial.Parse(servers)
	if err == nil && len(c.servers) == 0 {
		c.noServer = misuse.Invalidf("connect string %q names no server", servers)
	}
	return c, err
}

// finish checks what the options have set, and completes it.
func (c *config) finish() error {
	var errs []error
	if c.resolve == nil {
		errs = append(errs, c.noServer)
	}
	if c.margin >= c.timeout {
		errs = append(errs, misuse.Invalidf("margin %v is not below the session timeout %v", c.margin, c.timeout))
	}
	errs = append(errs, c.checkLease())
	if c.waits.First == 0 { // a client without a connection dials less often than it would send heartbeats
		c.waits.First, c.waits.Most = 50*time.Millisecond, min(15*time.Second, c.timeout/2)
	}
	c.log, c.lines = queued(c.log)
	return errors.Join(errs...)
}

// checkLease fails if the options alone tell that every session which owns a node would be lost. Without the tick they do
// not tell, so a session is checked again when it is granted.
func (c *config) checkLease() error {
	if c.tick == 0 || c.margin >= c.timeout {
		return nil
	}
	timeout, half := max(c.timeout, 2*c.tick), c.tick/2
	margin, ok := clock.Margin(c.margin, timeout, half)
	if ok && (c.margin == 0 || margin == c.margin) {
		return nil
	}
	if c.margin > 0 {
		margin = c.margin
	}
	return misuse.Invalidf("%v (WithTimeout, WithMargin, WithTickTime)", &shortLease{timeout, margin, half})
}

// outward adds the chroot to a path, and inward removes it.
func (c *config) outward(path string) string {
	if path == "/" && c.chroot != "" {
		return c.chroot
	}
	return c.chroot + path
}

func (c *config) inward(path string) string {
	if rest := strings.TrimPrefix(path, c.chroot); rest != "" {
		return rest
	}
	return "/"
}
