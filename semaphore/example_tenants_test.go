package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

const (
	perTenant = 3
	together  = 10
)

// exportFor does a piece of work for a tenant: at most three at a time for each tenant, and ten for
// all of them. More requests wait, for two seconds.
func exportFor(ctx context.Context, m *session.Manager, tenant string, work func(context.Context) error) error {
	own, err := semaphore.New(m, "/limits/tenant/"+zklock.EscapePath(tenant), perTenant)
	if err != nil {
		return err
	}
	all, err := semaphore.New(m, "/limits/total", together)
	if err != nil {
		return err
	}
	both, err := zklock.Multi(own, all) // in the order of their paths: a tenant at its limit takes nothing of the total
	if err != nil {
		return err
	}
	return both.Do(queue.WithMaxWait(ctx, 2*time.Second), work)
}

// A limit for each tenant, and one for all of them together.
func Example_tenants() {
	m, stop := start()
	defer stop()
	err := exportFor(context.Background(), m, "acme/eu", func(context.Context) error {
		fmt.Println("one of three for this tenant")
		return nil
	})
	if errors.Is(err, queue.ErrMaxWait) {
		fmt.Println("503: try again later")
	} else if err != nil {
		log.Fatal(err)
	}
	// Output: one of three for this tenant
}
