package zktest

import (
	"crypto/sha1"
	"encoding/base64"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Permissions.
const (
	permRead int32 = 1 << iota
	permWrite
	permCreate
	permDelete
	permAdmin
	permAll = permRead | permWrite | permCreate | permDelete | permAdmin
)

// identity is who somebody is, by one scheme.
type identity struct{ scheme, id string }

type aclEntry struct {
	perms int32
	id    identity
}

var (
	anyone  = identity{"world", "anyone"}
	openACL = []aclEntry{{permAll, anyone}}
	readACL = []aclEntry{{permRead, anyone}}
)

// permitted reports whether one who is all of ids has one of the permissions.
func permitted(acl []aclEntry, perms int32, ids []identity) bool {
	if len(acl) == 0 {
		return true
	}
	for _, a := range acl {
		if a.perms&perms == 0 {
			continue
		}
		if a.id == anyone || slices.ContainsFunc(ids, func(id identity) bool { return matches(id, a.id) }) {
			return true
		}
	}
	return false
}

// matches reports whether a client's identity is the one in an ACL.
func matches(have, want identity) bool {
	if have.scheme != want.scheme {
		return false
	}
	if want.scheme != "ip" {
		return have.id == want.id
	}
	addr, err := netip.ParseAddr(have.id)
	prefix, ok := parseIP(want.id)
	return err == nil && ok && prefix.Contains(addr)
}

// parseIP reads an address, or one with a number of bits that count.
func parseIP(s string) (netip.Prefix, bool) {
	host, bits, found := strings.Cut(s, "/")
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Prefix{}, false
	}
	n := addr.BitLen()
	if found {
		if n, err = strconv.Atoi(bits); err != nil {
			return netip.Prefix{}, false
		}
	}
	prefix, err := addr.Prefix(n)
	return prefix, err == nil
}

// fixACL checks an ACL that a client wants a node to have, and puts the client's
// own identities in place of "auth".
func fixACL(acl []aclEntry, ids []identity) ([]aclEntry, error) {
	var fixed []aclEntry
	for i, a := range acl {
		if slices.Contains(acl[:i], a) {
			continue
		}
		switch {
		case a.id == anyone || validID(a.id):
			fixed = append(fixed, a)
		case a.id.scheme == "auth":
			found := false
			for _, id := range ids {
				if id.scheme == "digest" {
					found = true
					fixed = append(fixed, aclEntry{a.perms, id})
				}
			}
			if !found {
				return nil, codeInvalidACL
			}
		default:
			return nil, codeInvalidACL
		}
	}
	if len(fixed) == 0 {
		return nil, codeInvalidACL
	}
	return fixed, nil
}

func validID(id identity) bool {
	switch id.scheme {
	case "digest":
		// Java's split drops what is empty at the end.
		return strings.Count(strings.TrimRight(id.id, ":"), ":") == 1
	case "ip":
		_, ok := parseIP(id.id)
		return ok
	}
	return false
}

// authenticate returns the identity that a credential proves.
func authenticate(scheme string, credential []byte, ip identity) (identity, error) {
	switch scheme {
	case "digest":
		sum := sha1.Sum(credential)
		user, _, _ := strings.Cut(string(credential), ":")
		return identity{"digest", user + ":" + base64.StdEncoding.EncodeToString(sum[:])}, nil
	case "ip":
		return ip, nil
	}
	return identity{}, codeAuthFailed
}

// hideDigests is what one who may read but not administer sees of an ACL.
func hideDigests(acl []aclEntry) []aclEntry {
	shown := slices.Clone(acl)
	for i, a := range shown {
		if a.id.scheme == "digest" {
			user, _, _ := strings.Cut(a.id.id, ":")
			shown[i].id.id = user + ":x"
		}
	}
	return shown
}
