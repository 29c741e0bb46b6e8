package cli

import (
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/pflag"
)

// aclChoice is the value of --acl: the access control list of the nodes that a command makes.
type aclChoice struct {
	inherit bool
	list    []zk.ACL // unless it is inherited
}

const (
	aclInherit = "inherit"
	aclOpen    = "open"
	aclCreator = "creator"
)

func aclFlag(f *pflag.FlagSet, to *string) {
	f.StringVar(to, "acl", aclInherit, "access control `list` of the nodes that are made: inherit, open, creator, or scheme:id:rights,...")
}

// aclHelp is the part of a long help that is about --acl.
const aclHelp = `--acl says which clients have rights to the nodes that are made: the directory of the lock,
those above it, and the contender's own node.
  inherit  The list of the lock's directory, or of the nearest directory above it that
           exists. If only a directory above exists and it is open to all, the identities
           of --auth get all rights, and nobody else any. Without one, all clients do.
  open     All clients have all rights.
  creator  The identities of --auth have all rights, and nobody else any.
  LIST     Entries scheme:id:rights, with commas between them. Rights are letters: create,
           delete, read, write, admin. Example: digest:ops:BASE64:cdrwa,world:anyone:r
A directory that exists keeps its list. A client that may delete in it can break its
locks.`

// aclLetters are the letters of the rights, in ZooKeeper's order of the bits.
const aclLetters = "rwcda"

// rightNames are ZooKeeper's names of the rights, in the same order.
var rightNames = []string{"READ", "WRITE", "CREATE", "DELETE", "ADMIN"}

// rightsText names rights: "the rights READ and CREATE".
func rightsText(rights int32) string {
	var all []string
	for i, name := range rightNames {
		if rights&(1<<i) != 0 {
			all = append(all, name)
		}
	}
	if n := len(all); n > 1 {
		return "the rights " + strings.Join(all[:n-1], ", ") + " and " + all[n-1]
	}
	return "the right " + strings.Join(all, "")
}

// aclOf parses --acl, without I/O but for --auth-file. needs are the rights that the command needs in the directories it
// makes.
func (a *App) aclOf(text string, needs int32) (aclChoice, error) {
	identities, err := a.connection.identities()
	if err != nil {
		return aclChoice{}, err
	}
	someone := len(identities) > 0 || a.connection.tls.Cert != ""
	switch text {
	case aclInherit:
		return aclChoice{inherit: true}, nil
	case aclOpen:
		return aclChoice{list: zk.WorldACL(zk.PermAll)}, nil
	case aclCreator:
		text = "auth::" + aclLetters
	}
	list, err := parseACL(text)
	switch {
	case err != nil:
		return aclChoice{}, err
	case slices.ContainsFunc(list, func(e zk.ACL) bool { return e.Scheme == "auth" }) && !someone:
		return aclChoice{}, usagef("--acl: there is no identity that could have rights: see --auth and --auth-file")
	}
	if missing := needs &^ possible(list, identities); missing != 0 {
		return aclChoice{}, usagef("--acl %s: this client would not have %s itself", text, rightsText(missing))
	}
	return aclChoice{list: list}, nil
}

// parseACL parses entries scheme:id:rights. An id can have colons and commas.
func parseACL(text string) ([]zk.ACL, error) {
	var list []zk.ACL
	entry := ""
	for _, piece := range strings.Split(text, ",") {
		entry += piece
		if e, ok := parseEntry(entry); ok {
			if err := checkEntry(e); err != nil {
				return nil, usagef("--acl %s: %w", entry, err)
			}
			list, entry = append(list, e), ""
			continue
		}
		entry += ","
	}
	if entry != "" {
		return nil, usagef("--acl %q: want inherit, open, creator, or scheme:id:rights with rights out of cdrwa, such as world:anyone:r",
			strings.TrimSuffix(entry, ","))
	}
	return list, nil
}

// parseEntry parses one entry. It reports whether the text can be one.
func parseEntry(text string) (e zk.ACL, ok bool) {
	scheme, rest, ok := strings.Cut(text, ":")
	at := strings.LastIndexByte(rest, ':')
	if !ok || scheme == "" || at < 0 || at == len(rest)-1 {
		return e, false
	}
	e = zk.ACL{Scheme: scheme, ID: rest[:at]}
	for _, letter := range rest[at+1:] {
		i := strings.IndexRune(aclLetters, letter)
		if i < 0 {
			return e, false
		}
		e.Perms |= 1 << i
	}
	return e, true
}

// checkEntry finds the mistakes that would lock out, or let in, other clients than the ones that are meant.
func checkEntry(e zk.ACL) error {
	switch e.Scheme {
	case "world":
		if e.ID != "anyone" {
			return fmt.Errorf("the scheme world has the id anyone")
		}
	case "auth":
		if e.ID != "" {
			return fmt.Errorf("the scheme auth has no id: auth::cdrwa")
		}
	case "digest":
		_, hash, _ := strings.Cut(e.ID, ":")
		if sum, err := base64.StdEncoding.DecodeString(hash); err != nil || len(sum) != sha1.Size {
			return fmt.Errorf("the scheme digest has the id user:hash, with the hash by: printf %%s user:password | openssl sha1 -binary | base64")
		}
	case "ip":
		if _, err := netip.ParseAddr(e.ID); err != nil {
			if _, err := netip.ParsePrefix(e.ID); err != nil {
				return fmt.Errorf("the scheme ip has an address as its id")
			}
		}
	default:
		if e.ID == "" {
			return fmt.Errorf("there is no id")
		}
	}
	return nil
}

// possible returns the rights that a client may have by a list. Only the servers know the address and the certificate
// that they see, and which schemes they have. For them, the user super has all rights.
func possible(list []zk.ACL, identities []identity) int32 {
	var rights int32
	if slices.ContainsFunc(identities, func(i identity) bool { return i.name() == "digest:super" }) {
		rights = zk.PermAll
	}
	for _, e := range list {
		if e.Scheme != "digest" || slices.ContainsFunc(identities, func(i identity) bool { return i.matches(e) }) {
			rights |= e.Perms
		}
	}
	return rights
}

// matches reports whether an identity is that of an entry with the scheme digest.
func (i identity) matches(e zk.ACL) bool {
	user, password, _ := strings.Cut(string(i.credential), ":")
	return i.scheme == "digest" && zk.DigestACL(e.Perms, user, password)[0].ID == e.ID
}

// name is the identity without its secret.
func (i identity) name() string {
	switch i.scheme {
	case "digest", schemeSASL:
		user, _, _ := strings.Cut(string(i.credential), ":")
		return i.scheme + ":" + user
	}
	return i.scheme
}

// isOpen reports whether a list gives all clients all rights.
func isOpen(list []zk.ACL) bool {
	return slices.ContainsFunc(list, func(e zk.ACL) bool { return e.Scheme == "world" && e.Perms&zk.PermAll == zk.PermAll })
}

// hidden reports whether the servers hide the hash of an entry, since this client does not have the right ADMIN.
func hidden(e zk.ACL) bool { return e.Scheme == "digest" && strings.HasSuffix(e.ID, ":x") }
