package core

import "testing"

func TestChroot(t *testing.T) {
	for servers, want := range map[string]string{"h1": "/", "h1/": "/", "h1,h2/app/a": "/app/a"} {
		cfg, err := newConfig(servers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := cfg.outward("/"); got != want {
			t.Errorf("%s: %s, want %s", servers, got, want)
		}
	}
}

// The full name of a path does not depend on how the servers are written. It contains the chroot.
func TestFullName(t *testing.T) {
	for _, c := range []struct{ servers, path, want string }{
		{"h1", "/a", "h1:2181/a"},
		{"H2:2181, h1:2182,h2", "/a", "h1:2182,h2:2181/a"},
		{"h1/app", "/a/b", "h1:2181/app/a/b"},
		{"h1/", "/a", "h1:2181/a"},
		{"h1/app", "/", "h1:2181/app"},
		{"h1", "/", "h1:2181/"},
		{"[::1]:1/app", "/a", "[::1]:1/app/a"},
	} {
		cfg, err := newConfig(c.servers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := (&Manager{cfg: cfg}).FullName(c.path); got != c.want {
			t.Errorf("%s at %q: %s, want %s", c.path, c.servers, got, c.want)
		}
	}
}

// A name replaces the servers, and not the chroot.
func TestFullNameOfNamed(t *testing.T) {
	cfg, err := newConfig("h1,h2/app", []Option{WithName("Blue, east")})
	if err != nil {
		t.Fatal(err)
	}
	if got := (&Manager{cfg: cfg}).FullName("/a"); got != "Blue, east/app/a" {
		t.Errorf("full name %q", got)
	}
}
