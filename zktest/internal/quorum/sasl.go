package quorum

import (
	"slices"

	"github.com/turnstile-go/turnstile/internal/digestmd5"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// sasl takes a step of a client in an exchange by DIGEST-MD5. A server without SASL answers with nothing, as
// ZooKeeper's do. When the exchange has ended well, the connection has the user as a further identity.
func (st *State) sasl(p *Peer, xid int32, d *znode.Decoder) {
	said := d.Buffer()
	if d.Bad {
		st.hangUp(p)
		return
	}
	var answer []byte
	if st.conf.Passwords != nil {
		if p.sasl == nil {
			p.sasl = digestmd5.NewServer(st.conf.Passwords)
		}
		var user string
		var err error
		if answer, user, err = p.sasl.Response(said); err != nil {
			code := znode.CodeAuthFailed
			if st.conf.RequireSASL {
				code = znode.CodeRequireSASL
			}
			p.replyAt(0, xid, code, nil)
			st.hangUp(p)
			return
		}
		if user != "" {
			p.addID(znode.Identity{Scheme: "sasl", ID: user})
		}
	}
	e := new(znode.Encoder)
	e.Buffer(answer)
	p.replyAt(0, xid, znode.CodeOK, e.B)
}

// admits reports whether a client may make requests. A server that wants SASL first refuses the others, and hangs up.
func (st *State) admits(p *Peer, xid int32) bool {
	proved := slices.ContainsFunc(p.ids, func(id znode.Identity) bool { return id.Scheme == "sasl" })
	if proved || !st.conf.RequireSASL {
		return true
	}
	p.replyAt(0, xid, znode.CodeRequireSASL, nil)
	st.hangUp(p)
	return false
}
