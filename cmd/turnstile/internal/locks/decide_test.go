package locks

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

const uuid = "01234567-89ab-cdef-0123-456789abcdef"

func name(prefix string, sequence int) string {
	return fmt.Sprintf("_c_%s-%s%010d", uuid, prefix, sequence)
}

// The rules of this package say the same as the library's own, for random queues of each kind of lock.
func TestDecideLikeLibrary(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testserver.Bound())
	defer cancel()
	m := testserver.Connect(t, testserver.Server(t).Addr(0))
	tree := NewTree(m, testserver.Patience)
	random := rand.New(rand.NewPCG(1, 2))
	for kind, k := range kindsOfLibrary {
		for range 15 {
			dir := testserver.Path(t)
			most := 1 + random.IntN(4)
			plant(t, dir, k.data(most))
			for i := range 1 + random.IntN(7) {
				prefix := k.prefixes[random.IntN(len(k.prefixes))]
				if kind == Semaphore && random.IntN(2) == 0 {
					prefix = fmt.Sprintf("x%d-%s", 2+random.IntN(2), prefix)
				}
				plant(t, path.Join(dir, name(prefix, i*3)), `{"id":"a/1","label":"l","traceparent":"t"}`)
			}
			want, err := k.contenders(ctx, m, dir, most)
			if err != nil {
				t.Fatal(err)
			}
			l, err := tree.Read(ctx, dir, All)
			if err != nil {
				t.Fatal(err)
			}
			if l.Kind != kind {
				t.Errorf("%s: kind %q", kind, l.Kind)
			}
			compare(t, l, want)
		}
	}
}

func compare(t *testing.T, l *Lock, want []queue.Contender) {
	t.Helper()
	type line struct {
		Path, ID, Label, Traceparent string
		Sequence                     int32
		Holds                        bool
		Token                        int64
		Since                        int64
		Session                      bool
	}
	var a, b []line
	for _, c := range l.Contenders {
		a = append(a, line{c.Path, c.ID, c.Label, c.Traceparent, c.Sequence, c.Holds, c.Token, c.Since.UnixMilli(), !c.ByHand})
	}
	for _, c := range want {
		b = append(b, line{c.Path, c.ID, c.Label, c.Traceparent, c.Sequence, c.Holder, c.Token, c.Since.UnixMilli(), c.Session != 0})
	}
	if diff := cmp.Diff(b, a); diff != "" {
		t.Errorf("%s differs from the library (-library +here):\n%s", l.Path, diff)
	}
}

// kindsOfLibrary are the library's locks.
var kindsOfLibrary = map[Kind]struct {
	prefixes   []string
	data       func(most int) string
	contenders func(ctx context.Context, m *session.Manager, dir string, most int) ([]queue.Contender, error)
}{
	Mutex: {[]string{"lock-"}, none, func(ctx context.Context, m *session.Manager, dir string, _ int) ([]queue.Contender, error) {
		mx, err := zklock.New(m, dir)
		if err != nil {
			return nil, err
		}
		return mx.Contenders(ctx)
	}},
	RWLock: {[]string{"__READ__", "__WRIT__"}, none, func(ctx context.Context, m *session.Manager, dir string, _ int) ([]queue.Contender, error) {
		rw, err := rwlock.New(m, dir)
		if err != nil {
			return nil, err
		}
		return rw.Contenders(ctx)
	}},
	Semaphore: {[]string{"lease-"}, func(most int) string { return fmt.Sprintf(`{"maxLeases":%d}`, most) },
		func(ctx context.Context, m *session.Manager, dir string, most int) ([]queue.Contender, error) {
			s, err := semaphore.New(m, dir, most)
			if err != nil {
				return nil, err
			}
			return s.Contenders(ctx)
		}},
}

func none(int) string { return "" }

// plant makes a persistent node and its parents, as an operator would.
func plant(tb testing.TB, p, data string) {
	tb.Helper()
	if dir := path.Dir(p); dir != "/" {
		if ok, _, err := testserver.Admin(tb).Exists(dir); err == nil && !ok {
			plant(tb, dir, "")
		}
	}
	_, err := testserver.Admin(tb).Create(p, []byte(data), 0, zk.WorldACL(zk.PermAll))
	if errors.Is(err, zk.ErrNodeExists) && data != "" {
		_, err = testserver.Admin(tb).Set(p, []byte(data), -1)
	}
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		tb.Fatalf("plant %s: %v", p, err)
	}
}
