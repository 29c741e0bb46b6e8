package cli

import "testing"

// Bad lists are errors before any I/O.
func TestACLUsage(t *testing.T) {
	for flag, want := range map[string]string{
		"--acl=": "want inherit, open or creator", "--acl=world:anyone:r": "want inherit, open or creator", "--acl=creator": "--auth",
	} {
		call(t.Context(), []string{"TURNSTILE_ZK=127.0.0.1:1"}, "run", flag, "/a", "--", "true").want(t, codeUsage, want)
	}
}
