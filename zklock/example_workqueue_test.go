package zklock_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// jobs is a queue of work. Each item is a persistent node, and is worked on under a lock of its own.
type jobs struct {
	m             *session.Manager
	items, failed string // directories
	locks         *zklock.Keyed
}

// item is the data of a node.
type item struct {
	Tries int // that have begun
	Work  string
}

// maxTries bounds the harm of an item that fails again and again, or kills its workers.
const maxTries = 3

func openJobs(ctx context.Context, m *session.Manager, dir string) (*jobs, error) {
	s, err := m.Session(ctx)
	if err != nil {
		return nil, err
	}
	j := &jobs{m: m, items: dir + "/items", failed: dir + "/failed"}
	for _, d := range []string{dir, j.items, j.failed} {
		if _, err := s.Create(ctx, d, nil, session.Persistent); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return nil, err
		}
	}
	j.locks, err = zklock.NewKeyed(m, dir+"/locks")
	return j, err
}

// add adds an item. Its error matches zk.ErrNodeExists if there is one with this id.
func (j *jobs) add(ctx context.Context, id, work string) error {
	s, err := j.m.Session(ctx)
	if err != nil {
		return err
	}
	data, err := json.Marshal(item{Work: work})
	if err != nil {
		return err
	}
	_, err = s.Create(ctx, j.items+"/"+zklock.EscapePath(id), data, session.Persistent)
	return err
}

// pass works on all items that no other worker is at. A worker calls it again and again, with a pause in between.
func (j *jobs) pass(ctx context.Context, do func(ctx context.Context, work string) error) error {
	s, err := j.m.Session(ctx)
	if err != nil {
		return err
	}
	names, _, err := s.Children(ctx, j.items)
	if err != nil {
		return err
	}
	rand.Shuffle(len(names), func(a, b int) { names[a], names[b] = names[b], names[a] }) // workers begin with different ones
	var errs []error
	for _, name := range names {
		_, err := j.locks.TryDo(ctx, name, func(ctx context.Context) error { return j.one(ctx, name, do) })
		if err != nil {
			errs = append(errs, fmt.Errorf("item %s: %w", name, err)) // it stays, for the next pass of any worker
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// one works on an item, under its lock. Each write takes effect only while this worker has the lock.
func (j *jobs) one(ctx context.Context, name string, do func(ctx context.Context, work string) error) error {
	lease, _ := queue.LeaseFrom(ctx)
	s, err := j.m.Session(ctx)
	if err != nil {
		return err
	}
	path := j.items + "/" + name
	data, stat, err := s.Get(ctx, path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil // it was done since the listing
	}
	if err != nil {
		return err
	}
	var it item
	if err := json.Unmarshal(data, &it); err != nil {
		return err
	}
	if it.Tries == maxTries {
		_, err = s.Multi(ctx, lease.Guard(), &zk.CreateRequest{Path: j.failed + "/" + name, Data: data},
			&zk.DeleteRequest{Path: path, Version: stat.Version})
		return err
	}
	it.Tries++ // before the work, which may not return
	if data, err = json.Marshal(it); err != nil {
		return err
	}
	if _, err = s.Multi(ctx, lease.Guard(), &zk.SetDataRequest{Path: path, Data: data, Version: stat.Version}); err != nil {
		return err
	}
	if err := do(ctx, it.Work); err != nil {
		return err
	}
	_, err = s.Multi(ctx, lease.Guard(), &zk.DeleteRequest{Path: path, Version: stat.Version + 1})
	return err
}

// A queue of work with leases.
func Example_workQueue() {
	m, closeAll := connectExample()
	defer closeAll()
	ctx := context.Background()
	exports, err := openJobs(ctx, m, "/exports")
	if err != nil {
		log.Fatal(err)
	}
	if err := exports.add(ctx, "2026/42", "invoice 42"); err != nil {
		log.Fatal(err)
	}
	err = exports.pass(ctx, func(ctx context.Context, work string) error {
		fmt.Println("export", work)
		return ctx.Err() // ctx ends when the lock is lost: another worker can begin
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: export invoice 42
}
