// Package fakedns resolves names in tests.
package fakedns

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/internal/rounds"
)

// Resolver has addresses for names, and may be slow with some of them. Its fields may be set before the first lookup.
type Resolver struct {
	mu    sync.Mutex
	Names map[string][]string
	Slow  map[string]time.Duration
	Err   error // for names without addresses; nil: there are none
	Asked int
}

// Lookup returns the addresses of a name. It takes as long as Slow says.
func (d *Resolver) Lookup(ctx context.Context, host string) ([]string, error) {
	d.mu.Lock()
	d.Asked++
	slow := d.Slow[host]
	d.mu.Unlock()
	if err := rounds.Until(ctx, nil, slow); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch ips := d.Names[host]; {
	case ips != nil:
		return ips, nil
	case d.Err != nil:
		return nil, d.Err
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// Set replaces all names.
func (d *Resolver) Set(names map[string][]string, slow map[string]time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Names, d.Slow = names, slow
}
