package cli

import (
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"
)

const hashOfAlice = "alice:FRCd0Cxz+wJlLlCJFT9hpfIjQ8c=" // any hash

func TestParseACL(t *testing.T) {
	app := &App{connection: connection{auths: []string{"digest:a:b"}}}
	for text, want := range map[string][]zk.ACL{
		"world:anyone:r":                        {{Perms: zk.PermRead, Scheme: "world", ID: "anyone"}},
		"auth::cdrwa":                           {{Perms: zk.PermAll, Scheme: "auth"}},
		"digest:" + hashOfAlice + ":rw,auth::a": {{Perms: zk.PermRead | zk.PermWrite, Scheme: "digest", ID: hashOfAlice}, {Perms: zk.PermAdmin, Scheme: "auth"}},
		"ip:::1:c,ip:10.0.0.0/8:d":              {{Perms: zk.PermCreate, Scheme: "ip", ID: "::1"}, {Perms: zk.PermDelete, Scheme: "ip", ID: "10.0.0.0/8"}},
		"x509:CN=a,O=b:cr,world:anyone:r":       {{Perms: zk.PermCreate | zk.PermRead, Scheme: "x509", ID: "CN=a,O=b"}, {Perms: zk.PermRead, Scheme: "world", ID: "anyone"}},
	} {
		got, err := app.aclOf(text, 0)
		if diff := cmp.Diff(want, []zk.ACL(got)); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, diff)
		}
	}
}

// Bad lists are errors before any I/O.
func TestACLUsage(t *testing.T) {
	for flags, want := range map[string]string{
		"--acl=":                               "want inherit, open, creator",
		"--acl=all":                            "want inherit, open, creator",
		"--acl=world:anyone":                   "want inherit, open, creator",
		"--acl=world:anyone:":                  "want inherit, open, creator",
		"--acl=world:anyone:crx":               "want inherit, open, creator",
		"--acl=world:anyone:cdr,":              "want inherit, open, creator",
		"--acl=world:all:cdrw":                 "anyone",
		"--acl=auth:me:cdrw --auth digest:a:b": "auth has no id",
		"--acl=digest:alice:secret:cdrw":       "openssl",
		"--acl=ip:host:cdrw":                   "address",
		"--acl=sasl::cdrw":                     "no id",
		"--acl=creator":                        "--auth",
		"--acl=auth::cdrw":                     "--auth",
		"--acl=world:anyone:r":                 "CREATE",
		"--acl=creator --auth nonsense":        "scheme:credentials",
	} {
		env := []string{"TURNSTILE_ZK=127.0.0.1:1"}
		run := append([]string{"run"}, strings.Fields(flags)...)
		call(t.Context(), env, append(run, "/a", "--", "true")...).want(t, codeUsage, want)
	}
	call(t.Context(), nil, "run", "--acl", "world:anyone:cr", "/a", "--", "true").want(t, codeUsage, "the right DELETE, this client neither")
	call(t.Context(), nil, "run", "--acl", "world:anyone:cdr", "--slots", "2", "/a", "--", "true").want(t, codeUsage, "the right WRITE, this client neither")
}
