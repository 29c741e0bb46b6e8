// Package saslkrb5 proves to ZooKeeper's servers by Kerberos who the client is: SASL's mechanism GSSAPI (RFC 4752), for
// [session.WithSASL]. It is a module of its own, because it needs a Kerberos library (gokrb5).
//
//	krb5, err := saslkrb5.FromKeytab("/etc/krb5.conf", "/etc/shop/shop.keytab", "shop@EXAMPLE.COM")
//	if err != nil {
//		return err
//	}
//	m, err := session.Connect(ctx, "zk1.example.com:2181,zk2.example.com:2181", session.WithSASL(krb5))
//
// The principal of a server is zookeeper/host, with the host of the connect string in lower case, as principals of
// services are written: so the connect string has the names for which the servers have keys. An ACL names the client as the servers do, for example sasl:shop@EXAMPLE.COM, or
// sasl:shop where kerberos.removeRealmFromPrincipal is set.
//
// # What it promises
//
// The server has to prove who it is too. There is no security layer: what follows the exchange is neither encrypted nor
// protected by it, as with ZooKeeper's own client. Use session.WithTLS for that.
//
// The KDC is asked when a connection begins, before anything is sent to the server. With a keytab, a ticket is used
// again until its end, unless the server has refused it: so the KDC may be down while tickets last. With a credential
// cache, the file is read for each connection.
package saslkrb5

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/keytab"

	"github.com/turnstile-go/turnstile/session"
)

// Mechanism is a [session.SASLMechanism]. Its methods may be called by any number of goroutines at once.
type Mechanism struct {
	open   func() (*client.Client, error) // with what the files have now
	keeps  bool                           // the client that open returns can log in again
	server string                         // the principal of all servers; "": zookeeper/host

	mu     sync.Mutex // held while the KDC is asked
	client *client.Client
	doubt  map[string]bool // servers that have not accepted their last ticket yet
}

var _ session.SASLMechanism = (*Mechanism)(nil)

// Option changes what [FromKeytab] and [FromCache] return.
type Option func(*Mechanism)

// WithServer sets the principal of the servers, for example "zookeeper/zk.example.com". Default: zookeeper/host, with the
// host of the connect string in lower case.
func WithServer(principal string) Option { return func(m *Mechanism) { m.server = principal } }

// FromKeytab returns the mechanism for a principal, such as "shop@EXAMPLE.COM", whose keys are in a file. krb5conf is
// Kerberos's configuration, usually /etc/krb5.conf. If a file cannot be read, the error matches [session.ErrInvalid].
// It asks nobody.
func FromKeytab(krb5conf, keys, principal string, opts ...Option) (*Mechanism, error) {
	name, realm, ok := strings.Cut(principal, "@")
	if !ok || name == "" || realm == "" {
		return nil, fmt.Errorf("saslkrb5: %w: principal %q: want name@REALM", session.ErrInvalid, principal)
	}
	return newMechanism(opts, true, func() (*client.Client, error) {
		conf, err := config.Load(krb5conf)
		if err != nil {
			return nil, err
		}
		kt, err := keytab.Load(keys)
		if err != nil {
			return nil, err
		}
		return client.NewWithKeytab(name, realm, kt, conf, client.DisablePAFXFAST(true)), nil
	})
}

// FromCache returns the mechanism for the principal of a credential cache, a file as kinit writes it. Something else has
// to renew it. krb5conf is as with [FromKeytab].
func FromCache(krb5conf, cache string, opts ...Option) (*Mechanism, error) {
	return newMechanism(opts, false, func() (*client.Client, error) {
		conf, err := config.Load(krb5conf)
		if err != nil {
			return nil, err
		}
		cc, err := credentials.LoadCCache(strings.TrimPrefix(cache, "FILE:"))
		if err != nil {
			return nil, err
		}
		return client.NewFromCCache(cc, conf, client.DisablePAFXFAST(true))
	})
}

func newMechanism(opts []Option, keeps bool, open func() (*client.Client, error)) (*Mechanism, error) {
	m := &Mechanism{open: open, keeps: keeps, doubt: make(map[string]bool)}
	for _, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("saslkrb5: %w: nil option", session.ErrInvalid)
		}
		o(m)
	}
	c, err := open()
	if err != nil {
		return nil, fmt.Errorf("saslkrb5: %w: %w", session.ErrInvalid, err)
	}
	m.client = c
	return m, nil
}

// Close ends the goroutine that renews tickets. Call it after the Close of the manager.
func (m *Mechanism) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.client.Destroy()
}

// Name implements [session.SASLMechanism].
func (*Mechanism) Name() string { return "GSSAPI" }

// Start implements [session.SASLMechanism]. It asks the KDC if it has no ticket for the server.
func (m *Mechanism) Start(ctx context.Context, host string) (session.SASLExchange, []byte, error) {
	server := m.server
	if server == "" {
		server = "zookeeper/" + strings.ToLower(strings.TrimSuffix(host, "."))
	}
	t, err := m.ticket(ctx, server)
	if err != nil {
		return nil, nil, fmt.Errorf("a ticket for %s: %w", server, err)
	}
	return &exchange{ticket: t, accepted: func() { m.accepted(server) }}, t.first, nil
}

func (m *Mechanism) accepted(server string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.doubt, server)
}

// ticket returns a ticket for a server.
func (m *Mechanism) ticket(ctx context.Context, server string) (*ticket, error) {
	type answer struct {
		*ticket
		err error
	}
	asked := make(chan answer, 1)
	go func() { // gokrb5 has no contexts, and bounds of its own
		t, err := m.ask(server)
		asked <- answer{t, err}
	}()
	select {
	case a := <-asked:
		return a.ticket, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ask gets a ticket that the client has, or one from the KDC.
func (m *Mechanism) ask(server string) (_ *ticket, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer recovered(&err)
	if !m.keeps || m.doubt[server] { // the server may have other keys by now
		c, err := m.open()
		if err != nil {
			return nil, err
		}
		m.client.Destroy()
		m.client = c
	}
	m.doubt[server] = true
	if err := m.client.AffirmLogin(); err != nil {
		return nil, err
	}
	t, key, err := m.client.GetServiceTicket(server)
	if err != nil {
		return nil, err
	}
	return newTicket(m.client, t, key)
}
