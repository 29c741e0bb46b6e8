package dial

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/misuse"
)

func TestParseConnectString(t *testing.T) {
	for _, c := range []struct {
		in      string
		servers []string
		chroot  string
	}{
		{"h", []string{"h:2181"}, ""},
		{"h:1", []string{"h:1"}, ""},
		{"", nil, ""},
		{" ", nil, ""},
		{"/", nil, ""},
		{"/a", nil, "/a"},
		{"h:65535", []string{"h:65535"}, ""},
		{"h1:1,h2,h3:3", []string{"h1:1", "h2:2181", "h3:3"}, ""},
		{" h1:1 ,\th2 ", []string{"h1:1", "h2:2181"}, ""},
		{"h/", []string{"h:2181"}, ""},
		{"h/a", []string{"h:2181"}, "/a"},
		{"h1:1,h2:2/a/b", []string{"h1:1", "h2:2"}, "/a/b"},
		{"h/a:1", []string{"h:2181"}, "/a:1"}, // all after the slash is a path
		{"127.0.0.1:1", []string{"127.0.0.1:1"}, ""},
		{"[::1]", []string{"[::1]:2181"}, ""},
		{"[::1]:1,[fe80::1]:2/a", []string{"[::1]:1", "[fe80::1]:2"}, "/a"},
		{"[fe80::1%eth0]:1", []string{"[fe80::1%eth0]:1"}, ""},
		{"::1", []string{"[::1]:2181"}, ""},
		{"[h]:1", []string{"h:1"}, ""},
	} {
		t.Run(c.in, func(t *testing.T) {
			servers, chroot, err := Parse(c.in)
			must(t, err)
			var got []string
			for _, s := range servers {
				got = append(got, s.String())
			}
			if !slices.Equal(got, c.servers) || chroot != c.chroot {
				t.Errorf("got %q and chroot %q, want %q and %q", got, chroot, c.servers, c.chroot)
			}
		})
	}
}

// badConnectStrings are refused.
var badConnectStrings = []string{
	",", "h,", ",h", "h,,h", ":1", ":", "h:", "h:x", "h:-1", "h:+1", "h:0",
	"::1:2181", "fe80::1:2181", "h:65536", "h:70000", "h: 1", "h 1", "h\x00:1", "h\nh", "h:1:2", "fe80::x", "[::1", "::1]", "[]",
	"[]:1", "[::1]1", "[::1]:", "[::1]:x", "[[::1]]", "[a:b]:1", "h]", "h[:1", "h//", "h/a/", "h/a//b", "h/../a",
	"h/a/.", "h/a\x00", "h/\xff", "h/a,b", "h/a,b:1", "h/a,h/a", "zk://h", "zk://h:1/a", "h,zk://h",
	"h;", "h/a;b", "h/a?", "?", ";", "me@h", "h#1", `h\a`,
}

// A connect string that is a common mistake is refused, and the error says how to write it. Taken
// as it stands, it would lock other nodes than the neighbours do.
func TestParseConnectStringSaysHow(t *testing.T) {
	for in, want := range map[string]string{
		"h1:2181/app,h2:2181/app":           "h1:2181,h2:2181/app",
		"h1/app, h2:1/app,h3/app":           "h1,h2:1,h3/app",
		"h1,h2/app/x,h3":                    "h1,h2,h3/app/x",
		"h1:2181/,h2:2181/":                 "h1:2181,h2:2181/",
		"zk://h1:2181,h2:2181/app":          "h1:2181,h2:2181/app",
		"zk://h1:2181/app,zk://h2:2181/app": "h1:2181,h2:2181/app",
		"zookeeper://[::1]:1":               "[::1]:1",
		"h:2181/locks?timeout=5":            "h:2181/locks",
		"h?x=1,y=2":                         "h",
		"a:1;b:2":                           "a:1,b:2",
		"a:1/x; b:2/x":                      "a:1,b:2/x",
		"zk://a;b?c":                        "a,b",
	} {
		_, _, err := Parse(in)
		if !errors.Is(err, misuse.ErrInvalid) || !strings.HasSuffix(err.Error(), fmt.Sprintf("%q", want)) {
			t.Errorf("%q: %v; want ErrInvalid, and %q at the end", in, err, want)
		}
	}
}

func TestParseConnectStringRefuses(t *testing.T) {
	for _, s := range badConnectStrings {
		if servers, chroot, err := Parse(s); !errors.Is(err, misuse.ErrInvalid) {
			t.Errorf("%q: got %v, %q, %v, want ErrInvalid", s, servers, chroot, err)
		}
	}
}

// Servers of an accepted connect string can be dialled. Written down again, it has the same
// meaning.
func FuzzParseConnectString(f *testing.F) {
	for _, s := range append([]string{"h1:1,h2/a", "[::1]:1", "::1", "[fe80::1%e]"}, badConnectStrings...) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		servers, chroot, err := Parse(in)
		if err != nil {
			if !errors.Is(err, misuse.ErrInvalid) {
				t.Fatalf("%v does not match ErrInvalid", err)
			}
			return
		}
		var list []string
		for _, s := range servers {
			host, port, err := net.SplitHostPort(s.String())
			if err != nil || host != s.Host || port != s.Port || host == "" {
				t.Fatalf("%q gives %+v, which splits into %q, %q, %v", in, s, host, port, err)
			}
			list = append(list, s.String())
		}
		if chroot != "" && (chroot == "/" || misuse.ValidatePath(chroot) != nil) {
			t.Fatalf("%q gives chroot %q", in, chroot)
		}
		again, chroot2, err := Parse(strings.Join(list, ",") + chroot)
		if err != nil || !slices.Equal(again, servers) || chroot2 != chroot {
			t.Fatalf("%q: %v, %q; written down again: %v, %q, %v", in, servers, chroot, again, chroot2, err)
		}
	})
}
