package zklock_test

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

var escapes = []struct{ in, out string }{
	{"orders-42", "orders-42"},
	{"Müller & Søn, 東京", "Müller & Søn, 東京"},
	{"user@example.com", "user@example.com"},
	{" ", " "},
	{"...", "..."},
	{".hidden", ".hidden"},
	{"~", "~"},

	{"", "%"},
	{".", "%2E"},
	{"..", "%2E."},
	{"/", "%2F"},
	{"../../etc/passwd", "..%2F..%2Fetc%2Fpasswd"},
	{"a/b", "a%2Fb"},
	{"a%2Fb", "a%252Fb"},
	{"%", "%25"},
	{"\x00", "%00"},
	{"a\nb\x7f", "a%0Ab%7F"},
	{"\u0085", "%C2%85"},
	{"\xff\xc3", "%FF%C3"},
	{"\ufffd", "%EF%BF%BD"},
	{"\ue000", "%EE%80%80"},
	{"🔒", "%F0%9F%94%92"},
	{"\xed\xa0\x80", "%ED%A0%80"}, // half a surrogate pair

	{"zookeeper", "%7Aookeeper"},
	{"locks", "%6Cocks"},
	{"leases", "%6Ceases"},
	{"zookeepers", "zookeepers"},
	{"_c_", "%5Fc_"},
	{"_c_x", "%5Fc_x"},
	{"lock-0000000001", "lock-000000000%31"},
	{"_c_4f1d-lock-0000000001", "%5Fc_4f1d-lock-000000000%31"},
	{"__READ__-2147483648", "__READ__-214748364%38"},
	{"lease--000000001", "lease--00000000%31"},
	{"order_0123456789", "order_012345678%39"},
	{"-0123456789", "-012345678%39"},
	{"0123456789", "0123456789"},
	{"-012345678", "-012345678"},
	{"invoice0123456789", "invoice0123456789"},
	{"4915112345678", "4915112345678"},
	{"+491511234567", "+491511234567"},
	{"order-20240131000042", "order-20240131000042"},
	{"/0123456789", "%2F0123456789"},
	{"123456789", "123456789"},
	{"2024-12-31 0123456789 b", "2024-12-31 0123456789 b"},

	{strings.Repeat("a", 255), strings.Repeat("a", 255)},
	{strings.Repeat("a", 256), strings.Repeat("a", 188) + "%~02d7160d77e18c6447be80c2e355c7ed4388545271702c50253b0914c65ce5fe~"},
	{strings.Repeat("/", 1<<20), strings.Repeat("%2F", 62) + "%~"},
	{strings.Repeat("東", 86), strings.Repeat("東", 62) + "%~"},
}

func TestEscapePath(t *testing.T) {
	for _, c := range escapes {
		got := zklock.EscapePath(c.in)
		if hashed := strings.HasSuffix(c.out, "%~"); got != c.out && !(hashed && strings.HasPrefix(got, c.out)) {
			t.Errorf("%.50q: %q, want %q", c.in, got, c.out)
		}
		checkElement(t, c.in, got)
	}
}

// checkElement checks what EscapePath promises of one element.
func checkElement(t *testing.T, in, out string) {
	t.Helper()
	if out == "" || strings.Contains(out, "/") || len(out) > 255 || !utf8.ValidString(out) {
		t.Errorf("%.50q: %q is not one element", in, out)
	}
	for _, path := range []string{"/" + out, "/locks/" + out, "/" + out + "/" + out} {
		if _, err := zklock.New(new(session.Manager), path); err != nil {
			t.Errorf("%.50q: %v", in, err)
		}
	}
	if n, ok := queue.ParseNode(out, "ticket-", "mine_"); ok {
		t.Errorf("%.50q: %q is contender %+v", in, out, n)
	}
	if strings.HasPrefix(out, "_c_") || out == "locks" || out == "leases" || out == "zookeeper" {
		t.Errorf("%.50q: %q is reserved", in, out)
	}
	if out != in && zklock.EscapePath(out) == out {
		t.Errorf("%.50q: %q stands for itself too", in, out)
	}
	if strings.Contains(out, "%~") {
		return // a hash cannot be reversed
	}
	if out == "%" {
		out = ""
	}
	back, err := url.PathUnescape(out)
	if err != nil || back != in {
		t.Errorf("%.50q: %q is the escape of %q, %v", in, out, back, err)
	}
}

// Elements without a hash can be unescaped, so no two strings have the same element.
func FuzzEscapePath(f *testing.F) {
	for _, c := range escapes {
		f.Add(c.in)
	}
	f.Fuzz(func(t *testing.T, in string) { checkElement(t, in, zklock.EscapePath(in)) })
}

// A server accepts all of the elements as siblings. A lock in whose directory they are does not take them
// for contenders.
func TestEscapePathOnAServer(t *testing.T) {
	ctx, m := patient(t), connect(t)
	dir := testserver.Path(t)
	for _, c := range escapes {
		mx := newMutex(t, m, dir+"/"+zklock.EscapePath(c.in))
		must(t, mx.Lock(ctx))
		if n := len(testserver.Children(t, mx.Path())); n != 1 {
			t.Errorf("%.50q: %d contenders", c.in, n)
		}
		defer func() { must(t, mx.Unlock()) }()
	}
	if n := len(testserver.Children(t, dir)); n != len(escapes) {
		t.Errorf("%d directories of %d", n, len(escapes))
	}
	outer := newMutex(t, m, dir)
	if ok, err := outer.TryLock(ctx); !ok || err != nil {
		t.Errorf("the lock around them: %v, %v", ok, err)
	}
	must(t, outer.Unlock())
}
