package cli

import (
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"
)

const hashOfAlice = "alice:FRCd0Cxz+wJlLlCJFT9hpfIjQ8c=" // any hash

func TestParseACL(t *testing.T) {
	for text, want := range map[string][]zk.ACL{
		"world:anyone:r":                        {{Perms: zk.PermRead, Scheme: "world", ID: "anyone"}},
		"auth::cdrwa":                           {{Perms: zk.PermAll, Scheme: "auth"}},
		"digest:" + hashOfAlice + ":rw,auth::a": {{Perms: zk.PermRead | zk.PermWrite, Scheme: "digest", ID: hashOfAlice}, {Perms: zk.PermAdmin, Scheme: "auth"}},
		"ip:::1:c,ip:10.0.0.0/8:d":              {{Perms: zk.PermCreate, Scheme: "ip", ID: "::1"}, {Perms: zk.PermDelete, Scheme: "ip", ID: "10.0.0.0/8"}},
		"x509:CN=a,O=b:cr,world:anyone:r":       {{Perms: zk.PermCreate | zk.PermRead, Scheme: "x509", ID: "CN=a,O=b"}, {Perms: zk.PermRead, Scheme: "world", ID: "anyone"}},
	} {
		got, err := parseACL(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, diff)
		}
	}
}

// Bad lists are errors before any I/O, and so are those that lock this client out.
func TestACLUsage(t *testing.T) {
	for flags, want := range map[string]string{
		"--acl=":                                "want inherit, open, creator",
		"--acl=all":                             "want inherit, open, creator",
		"--acl=world:anyone":                    "want inherit, open, creator",
		"--acl=world:anyone:":                   "want inherit, open, creator",
		"--acl=world:anyone:crx":                "want inherit, open, creator",
		"--acl=world:anyone:cdr,":               "want inherit, open, creator",
		"--acl=world:all:cdrw":                  "anyone",
		"--acl=auth:me:cdrw --auth digest:a:b":  "auth has no id",
		"--acl=digest:alice:secret:cdrw":        "openssl",
		"--acl=ip:host:cdrw":                    "address",
		"--acl=sasl::cdrw":                      "no id",
		"--acl=creator":                         "--auth",
		"--acl=auth::cdrw":                      "--auth",
		"--acl=world:anyone:r":                  "CREATE",
		"--acl=digest:" + hashOfAlice + ":cdrw": "the rights ",
		"--acl=creator --auth nonsense":         "scheme:credentials",
	} {
		env := []string{"TURNSTILE_ZK=127.0.0.1:1"}
		run := append([]string{"run"}, strings.Fields(flags)...)
		call(t.Context(), env, append(run, "/a", "--", "true")...).want(t, codeUsage, want)
		resize := append([]string{"resize"}, strings.Fields(flags)...)
		call(t.Context(), env, append(resize, "/a", "2")...).want(t, codeUsage, want)
	}
	call(t.Context(), nil, "run", "--acl", "world:anyone:cr", "/a", "--", "true").want(t, codeUsage, "the right DELETE itself")
	call(t.Context(), nil, "run", "--acl", "world:anyone:cdr", "--slots", "2", "/a", "--", "true").want(t, codeUsage, "the right WRITE itself")
}

// A list gives this client rights by its own digest, by the schemes that only the servers can judge, and if it is super.
func TestPossible(t *testing.T) {
	alice := zk.DigestACL(zk.PermRead, "alice", "pass:word")
	identities := func(credentials ...string) (all []identity) {
		for _, c := range credentials {
			all = append(all, identity{"digest", []byte(c)})
		}
		return all
	}
	for _, c := range []struct {
		what string
		list []zk.ACL
		by   []identity
		want int32
	}{
		{"nobody", alice, nil, 0},
		{"alice", alice, identities("bob:x", "alice:pass:word"), zk.PermRead},
		{"another password", alice, identities("alice:pass"), 0},
		{"super", alice, identities("super:x"), zk.PermAll},
		{"world", append(zk.WorldACL(zk.PermCreate), alice...), nil, zk.PermCreate},
		{"address", []zk.ACL{{Perms: zk.PermWrite, Scheme: "ip", ID: "10.0.0.1"}}, nil, zk.PermWrite},
	} {
		if got := possible(c.list, c.by); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, rightsText(got), rightsText(c.want))
		}
	}
}
