package znode

import (
	"crypto/sha1"
	"encoding/base64"
	"net/netip"
	"slices"
	"strings"
)

// The permissions that an ACL gives.
const (
	PermRead int32 = 1 << iota
	PermWrite
	PermCreate
	PermDelete
	PermAdmin
	PermAll = PermRead | PermWrite | PermCreate | PermDelete | PermAdmin
)

// An Identity names a client, by one of the schemes "world", "digest", "sasl", "ip" and "auth".
type Identity struct{ Scheme, ID string }

// An ACLEntry gives permissions to one identity.
type ACLEntry struct {
	Perms int32
	ID    Identity
}

// The identity that every client has, and ACLs for it.
var (
	Anyone  = Identity{"world", "anyone"}
	OpenACL = []ACLEntry{{PermAll, Anyone}}
	ReadACL = []ACLEntry{{PermRead, Anyone}}
)

// Permitted reports whether a client with these identities has at least one of the
// permissions. An empty ACL permits everything.
func Permitted(acl []ACLEntry, perms int32, ids []Identity) bool {
	if len(acl) == 0 {
		return true
	}
	for _, a := range acl {
		if a.Perms&perms == 0 {
			continue
		}
		if a.ID == Anyone || slices.ContainsFunc(ids, func(id Identity) bool { return matches(id, a.ID) }) {
			return true
		}
	}
	return false
}

// matches reports whether a client's identity is the one in an ACL. An IP address matches
// the network that it belongs to.
func matches(have, want Identity) bool {
	if have.Scheme != want.Scheme {
		return false
	}
	if want.Scheme != "ip" {
		return have.ID == want.ID
	}
	addr, err := netip.ParseAddr(have.ID)
	prefix, ok := parseIP(want.ID)
	return err == nil && ok && prefix.Contains(addr)
}

// parseIP reads an address, or a network: an address and the number of bits that count.
func parseIP(s string) (netip.Prefix, bool) {
	if prefix, err := netip.ParsePrefix(s); err == nil {
		return prefix, true
	}
	addr, err := netip.ParseAddr(s)
	return netip.PrefixFrom(addr, addr.BitLen()), err == nil
}

// FixACL checks the ACL that a client asks for. It drops repeated entries, and replaces the
// scheme "auth" with the client's own digest and SASL identities. An ACL with an invalid identity,
// or with no entry left, is [CodeInvalidACL]. sasl says whether the server knows identities of that scheme.
func FixACL(acl []ACLEntry, ids []Identity, sasl bool) ([]ACLEntry, error) {
	var fixed []ACLEntry
	for i, a := range acl {
		if slices.Contains(acl[:i], a) {
			continue
		}
		switch {
		case a.ID == Anyone || validID(a.ID) || sasl && a.ID.Scheme == "sasl" && a.ID.ID != "":
			fixed = append(fixed, a)
		case a.ID.Scheme == "auth":
			found := false
			for _, id := range ids {
				if id.Scheme == "digest" || id.Scheme == "sasl" {
					found = true
					fixed = append(fixed, ACLEntry{a.Perms, id})
				}
			}
			if !found {
				return nil, CodeInvalidACL
			}
		default:
			return nil, CodeInvalidACL
		}
	}
	if len(fixed) == 0 {
		return nil, CodeInvalidACL
	}
	return fixed, nil
}

func validID(id Identity) bool {
	switch id.Scheme {
	case "digest":
		// Java's split drops empty strings at the end.
		return strings.Count(strings.TrimRight(id.ID, ":"), ":") == 1
	case "ip":
		_, ok := parseIP(id.ID)
		return ok
	}
	return false
}

// Authenticate returns the identity that a credential proves. ip is the identity of the
// connection itself. An unknown scheme is [CodeAuthFailed].
func Authenticate(scheme string, credential []byte, ip Identity) (Identity, error) {
	switch scheme {
	case "digest":
		sum := sha1.Sum(credential)
		user, _, _ := strings.Cut(string(credential), ":")
		return Identity{"digest", user + ":" + base64.StdEncoding.EncodeToString(sum[:])}, nil
	case "ip":
		return ip, nil
	}
	return Identity{}, CodeAuthFailed
}

// HideDigests returns the ACL as a client sees it that may read but not administer the node: without the digests.
func HideDigests(acl []ACLEntry) []ACLEntry {
	shown := slices.Clone(acl)
	for i, a := range shown {
		if a.ID.Scheme == "digest" {
			user, _, _ := strings.Cut(a.ID.ID, ":")
			shown[i].ID.ID = user + ":x"
		}
	}
	return shown
}
