package cli

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/zktest"
)

// longest is the most bytes of one answer that the library reads.
const longest = 64 << 20

// plantMany makes the children from first to before last in few transactions. Their names are numbers of so many digits.
func (w *world) plantMany(t *testing.T, dir string, first, last, digits int) {
	t.Helper()
	const most = 500_000 // bytes of a transaction, about
	for i := first; i < last; {
		var ops []any
		for size := 0; i < last && (size == 0 || size+digits <= most); i++ {
			name := fmt.Sprintf("%s%09d", strings.Repeat("0", digits-9), i)
			ops = append(ops, &zk.CreateRequest{Path: dir + "/" + name, Acl: zk.WorldACL(zk.PermAll)})
			size += digits + 100
		}
		if _, err := w.admin.Multi(ops...); err != nil {
			t.Fatal(err)
		}
	}
}

// The list of a directory has as many bytes as the library reads, and then one more. In the second case the commands
// say what is too long, and do not ask again.
func TestListAtLimit(t *testing.T) {
	longtest.Only(t)
	const (
		around   = 16 + 4 + 68 // the header of an answer, the length of the list, and the stat
		children = 4618
		each     = (longest-around)/children - 4 // digits of a name, and a name has its length before it
	)
	for _, more := range []int{0, 1} {
		t.Run(fmt.Sprint(more, " too long"), func(t *testing.T) {
			srv := zktest.Start(t)
			w := newWorld(t, srv.Addr(), "/test")
			dir := path.Join(w.top, "big")
			w.plant(t, "big", "")
			w.plantMany(t, dir, 0, children-1, each)
			w.plantMany(t, dir, children-1, children, each+more)
			w.plant(t, "small", "")
			connections := func(args ...string) (result, int) {
				t.Helper()
				srv.ResetRequests()
				got := w.call(t.Context(), append(args, "--timeout", "30s")...)
				return got, srv.Count(zktest.Any(zktest.OpConnect))
			}
			_, usual := connections("ls", path.Join(w.top, "small"))
			call := func(args ...string) result {
				t.Helper()
				got, n := connections(args...)
				t.Logf("%v: %d connections, and %d for a short list", args[0], n, usual)
				if n > usual+8 { // on a busy machine some are dialled in vain
					t.Errorf("%v: %d connections, which is a loop; stderr: %.1000s", args[0], n, got.err)
				}
				return got
			}
			ls, show, list := call("ls", "--max", "1", dir), call("show", dir), call("ls", "--json", "--max", "3", w.top)
			if more == 0 {
				ls.want(t, 0, fmt.Sprintf("At least %d are left", children))
				show.want(t, 0)
				if !strings.Contains(show.stdout, fmt.Sprintf("a directory with %d children", children)) {
					t.Errorf("show prints %.200q", show.stdout)
				}
			} else {
				for _, got := range []result{ls, show} {
					got.want(t, codeFailed, "the list of the children of "+dir+" is too long", fmt.Sprint(longest+1, " bytes"), "zkCli.sh")
				}
			}
			list.want(t, 0)
			var found listJSON
			if err := json.Unmarshal([]byte(list.stdout), &found); err != nil {
				t.Fatal(err)
			}
			if len(found.Unread) != more {
				t.Errorf("unread: %.1000v", found.Unread)
			}
		})
	}
}

// A list never arrives: each connection breaks while it is awaited, as that of a session does which cannot wait any longer.
// The commands give up after three of them, and say so.
func TestListNeverArrives(t *testing.T) {
	w := newWorld(t, zktest.Start(t).Addr(), "/test")
	p := zktest.StartProxy(t, w.addr)
	w.own(t, "invoice/"+uuidA+"lock-0000000000", dataA)
	dir := path.Join(w.top, "invoice")
	list := zktest.On(zktest.OpGetChildren2, dir)
	const cuts = 24
	for range cuts {
		p.CutAfterCommit(list)
	}
	w.addr = p.Addr()
	said := []string{"the list of the children of " + dir, "--timeout"}
	for _, args := range [][]string{
		{"ls", dir}, {"show", dir}, {"break", dir}, {"limit", dir}, {"resize", dir, "3"}, {"top", "-n", "1", dir},
	} {
		p.ResetRequests()
		w.call(t.Context(), args...).want(t, codeConnect, said...)
		if n := p.Count(list); n != 3 {
			t.Errorf("%s asked for the list %d times, want 3", args[0], n)
		}
	}
	// Six are left, for two looks of these. Then the list comes.
	watch := w.begin(t, "", "watch", dir)
	watch.prints(t, "holds", "held")
	if n := strings.Count(watch.err.String(), said[0]); n != 2 {
		t.Errorf("watch says it %d times: %s", n, watch.err)
	}
	watch.stop(nil)
	for range 3 {
		p.CutAfterCommit(list)
	}
	top := w.begin(t, "", "top", "--interval", "100ms", dir)
	top.prints(t, "What is shown is old: "+said[0])
	top.prints(t, "1 held")
}
