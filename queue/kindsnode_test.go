package queue

import (
	"fmt"
	"math"
	"testing"
)

const (
	uuid36 = "0b3ea4c1-6f9a-4c4e-9d53-2f1c1c8f6a01"
	hex32  = "0b3ea4c16f9a4c4e9d532f1c1c8f6a01"
)

func TestParseNode(t *testing.T) {
	for _, c := range []struct {
		what, name string
		want       Node // without its name; Weight 0: not a contender
	}{
		{"ours and Curator's mutex", "_c_" + uuid36 + "-lock-0000000007", Node{"", uuid36, PrefixLock, 1, 7, false}},
		{"ours and Curator's LeaderLatch", "_c_" + uuid36 + "-latch-0000000007", Node{"", uuid36, PrefixLatch, 1, 7, false}},
		{"Curator's reader", "_c_" + uuid36 + "-__READ__0000000008", Node{"", uuid36, PrefixRead, 1, 8, false}},
		{"Curator's writer", "_c_" + uuid36 + "-__WRIT__0000000009", Node{"", uuid36, PrefixWrite, 1, 9, false}},
		{"Curator's semaphore", "_c_" + uuid36 + "-lease-0000000010", Node{"", uuid36, PrefixLease, 1, 10, false}},
		{"Curator without protection", "lock-0000000011", Node{"", "", PrefixLock, 1, 11, false}},
		{"old Curator's reader", "__READ__0000000012", Node{"", "", PrefixRead, 1, 12, false}},
		{"zk.Lock", "_c_" + hex32 + "-lock-0000000013", Node{"", hex32, PrefixLock, 1, 13, false}},
		{"kazoo's lock", hex32 + "__lock__0000000001", Node{"", "", PrefixKazooLock, 1, 1, false}},
		{"kazoo's reader", hex32 + "__rlock__0000000002", Node{"", "", PrefixKazooRead, 1, 2, false}},
		{"kazoo's subclass", hex32 + "-lock-0000000003", Node{"", "", PrefixLock, 1, 3, false}},

		{"asks for three", "_c_" + uuid36 + "-x3-lease-0000000004", Node{"", uuid36, PrefixLease, 3, 4, false}},
		{"asks for many", "_c_" + uuid36 + "-x2147483647-lease-0000000004", Node{"", uuid36, PrefixLease, math.MaxInt32, 4, false}},
		{"asks for three, no id", "x3-lease-0000000004", Node{"", "", PrefixLease, 3, 4, false}},
		{"weight zero is no weight", "_c_" + uuid36 + "-x0-lease-0000000004", Node{"", uuid36 + "-x0", PrefixLease, 1, 4, false}},
		{"leading zero is no weight", "_c_" + uuid36 + "-x03-lease-0000000004", Node{"", uuid36 + "-x03", PrefixLease, 1, 4, false}},
		{"too large for a weight", "_c_" + uuid36 + "-x2147483648-lease-0000000004", Node{"", uuid36 + "-x2147483648", PrefixLease, 1, 4, false}},
		{"negative weight", "_c_" + uuid36 + "-x-3-lease-0000000004", Node{"", uuid36 + "-x-3", PrefixLease, 1, 4, false}},
		{"a candidate with a rank, of a state before 0.1.0", "_c_" + uuid36 + "-rank3-elect-lock-0000000004", Node{"", uuid36 + "-rank3-elect", PrefixLock, 1, 4, false}},

		{"may be kept", "_c_" + uuid36 + "-keep-lock-0000000005", Node{"", uuid36, PrefixLock, 1, 5, true}},
		{"a reader that may be kept", "_c_" + uuid36 + "-keep-__READ__0000000006", Node{"", uuid36, PrefixRead, 1, 6, true}},
		{"both", "_c_" + uuid36 + "-keep-x3-lease-0000000007", Node{"", uuid36, PrefixLease, 3, 7, true}},
		{"a word before the prefix that only ends alike", "_c_" + uuid36 + "-upkeep-lock-0000000007", Node{"", uuid36 + "-upkeep", PrefixLock, 1, 7, false}},
		{"not ours, so it says nothing", "keep-lock-0000000007", Node{"", "", PrefixLock, 1, 7, false}},

		// What the counter does when it is used up.
		{"last", "_c_" + uuid36 + "-lock-2147483647", Node{"", uuid36, PrefixLock, 1, math.MaxInt32, false}},
		{"first negative", "_c_" + uuid36 + "-lock--2147483648", Node{"", uuid36, PrefixLock, 1, math.MinInt32, false}},
		{"negative kazoo of ten digits", hex32 + "__lock__-2000000000", Node{"", "", PrefixKazooLock, 1, -2e9, false}},
		{"negative kazoo in the field", hex32 + "__rlock__-000000005", Node{"", "", PrefixKazooRead, 1, -5, false}},

		{what: "empty"},
		{what: "some word", name: "foo"},
		{what: "short", name: "lock-1"},
		{what: "nine digits", name: "lock-000000001"},
		{what: "sequence alone", name: "0000000001"},
		{what: "another word that ends alike", name: "block-0000000001"},
		{what: "release is no lease", name: "release-0000000001"},
		{what: "protected alone", name: "_c_"},
		{what: "protected, nothing else", name: "_c_x"},
		{what: "no digits", name: "_c_" + uuid36 + "-lock-"},
		{what: "beyond 32 bits", name: "lock-2147483648"},
		{what: "beyond 32 bits, negative", name: "lock--2147483649"},
		{what: "minus zero", name: "lock--000000000"},
		{what: "sign inside", name: "lock-00000-0001"},
		{what: "plus", name: "lock-+000000001"},
		{what: "other digits", name: "lock-００００"},
		{what: "Curator's semaphore's lock directory", name: "locks"},
	} {
		t.Run(c.what, func(t *testing.T) {
			got, ok := ParseNode(c.name)
			want := c.want
			if want.Weight > 0 {
				want.Name = c.name
			}
			if ok != (want.Weight > 0) || got != want {
				t.Errorf("ParseNode(%q) = %+v, %v; want %+v", c.name, got, ok, want)
			}
		})
	}
}

// A name that a server makes of ours is parsed correctly for each sequence number. The server formats a
// signed 32-bit counter with %010d.
func FuzzParseNode(f *testing.F) {
	for _, seq := range []int32{0, 1, -1, 999999999, 1e9, -999999999, -1e9, math.MaxInt32, math.MinInt32} {
		for i := range knownPrefixes {
			f.Add(uuid36, i, 1+i, seq)
		}
	}
	f.Add("0000000001", 2, 3, int32(4))
	f.Add("--lock-0000000001", 0, 1, int32(-1e9))
	f.Fuzz(func(t *testing.T, text string, prefix, weight int, seq int32) {
		_, _ = ParseNode(text) // must not panic
		_, _ = ParseNode(protected + text)

		prefix, weight = int(uint(prefix)%uint(len(knownPrefixes))), max(1, weight&math.MaxInt32)
		keep := weight%2 == 0
		name := NodeName(uuid36, knownPrefixes[prefix], weight, keep) + fmt.Sprintf("%010d", seq)
		want := Node{name, uuid36, knownPrefixes[prefix], weight, seq, keep}
		if got, ok := ParseNode(name); !ok || got != want {
			t.Fatalf("ParseNode(%q) = %+v, %v; want %+v", name, got, ok, want)
		}
	})
}

// A kind's own prefixes are parsed beside the known ones. The longer of two prefixes counts.
func TestFurtherPrefixes(t *testing.T) {
	for _, c := range []struct {
		name, want string // prefix; "" for no contender
	}{
		{"_c_" + uuid36 + "-odd-0000000001", "odd-"},
		{"_c_" + uuid36 + "-even_0000000001", "even_"},
		{"_c_" + uuid36 + "-read-lock-0000000001", "read-lock-"},
		{"_c_" + uuid36 + "-lock-0000000001", PrefixLock},
		{"_c_" + uuid36 + "-other-0000000001", ""},
		{"_c_" + uuid36 + "-todd-0000000001", ""},
	} {
		n, ok := ParseNode(c.name, "odd-", "even_", "read-lock-")
		if n.Prefix != c.want || ok != (c.want != "") {
			t.Errorf("prefix of %s: %q, want %q", c.name, n.Prefix, c.want)
		}
	}
}

func TestCheckPrefix(t *testing.T) {
	for prefix, good := range map[string]bool{
		PrefixLock: true, PrefixRead: true, "odd-": true, "odd_": true, "read-lock-": true, "__x__": true,
		"": false, "-": false, "odd": false, "-odd-": false, "_c_odd-": false, "a/b-": false, "a\x00-": false,
		"odd__": true, "odd-_": true, "odd--": false, "odd_-": false, "__odd--": false,
		"unfair-": false, "my-unfair-": true,
	} {
		kind := Kind{Prefixes: []string{prefix}, Policy: Mutex().Policy}
		if err := kind.Check(); good != (err == nil) {
			t.Errorf("%q: %v", prefix, err)
		}
	}
}
