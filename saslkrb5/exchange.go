package saslkrb5

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/spnego"
	"github.com/jcmturner/gokrb5/v8/types"
)

// ticket is a ticket for a server, with what the client says in its first step.
type ticket struct {
	key   types.EncryptionKey // of the session with the server
	first []byte              // AP-REQ, as a token of GSSAPI
	ctime time.Time           // the time in it, which the server has to know
	cusec int
}

func newTicket(c *client.Client, t messages.Ticket, key types.EncryptionKey) (*ticket, error) {
	token, err := spnego.NewKRB5TokenAPREQ(c, t, key,
		[]int{gssapi.ContextFlagMutual, gssapi.ContextFlagInteg}, []int{flags.APOptionMutualRequired})
	if err != nil {
		return nil, err
	}
	first, err := token.Marshal()
	if err != nil {
		return nil, err
	}
	if err := token.APReq.DecryptAuthenticator(key); err != nil {
		return nil, err
	}
	a := token.APReq.Authenticator
	return &ticket{key: key, first: first, ctime: a.CTime, cusec: a.Cusec}, nil
}

// exchange is the client's end of one exchange (RFC 4752, with the tokens of RFC 4121):
//
//	client                 server
//	AP-REQ         ->
//	               <-      AP-REP, which proves that it has the key of the server
//	(nothing)      ->
//	               <-      the security layers that it offers
//	no layer       ->
type exchange struct {
	*ticket
	accepted func()
	step     int
	subkey   bool // key is one that the server has chosen
}

// Challenge implements session.SASLExchange.
func (x *exchange) Challenge(said []byte) (response []byte, done bool, err error) {
	defer recovered(&err)
	x.step++
	switch x.step {
	case 1:
		return []byte{}, false, x.verify(said)
	case 2:
		response, err := x.layer(said)
		if err == nil {
			x.accepted()
		}
		return response, true, err
	}
	return nil, false, errors.New("the server goes on after the exchange")
}

// verify takes AP-REP.
func (x *exchange) verify(said []byte) error {
	if len(said) == 0 {
		return errors.New("the server says nothing: it does not authenticate clients by SASL")
	}
	var token spnego.KRB5Token
	if err := token.Unmarshal(said); err != nil {
		return err
	}
	if token.IsKRBError() {
		return token.KRBError
	}
	if !token.IsAPRep() {
		return errors.New("the server does not prove who it is")
	}
	plain, err := crypto.DecryptEncPart(token.APRep.EncPart, x.key, keyusage.AP_REP_ENCPART)
	if err != nil {
		return fmt.Errorf("the server does not prove who it is: %w", err)
	}
	var part messages.EncAPRepPart
	if err := part.Unmarshal(plain); err != nil {
		return err
	}
	// The message has whole seconds, and the rest apart.
	if !part.CTime.Equal(x.ctime.Truncate(time.Second)) || part.Cusec != x.cusec {
		return errors.New("the server does not prove who it is: it answers to another request")
	}
	if len(part.Subkey.KeyValue) > 0 {
		x.key, x.subkey = part.Subkey, true
	}
	return nil
}

// noLayer is the bit of the security layer that is none.
const noLayer = 1

// layer takes the security layers that the server offers, and chooses none.
func (x *exchange) layer(said []byte) ([]byte, error) {
	token, err := unwrap(said)
	if err != nil {
		return nil, err
	}
	if ok, err := token.Verify(x.key, keyusage.GSSAPI_ACCEPTOR_SEAL); err != nil || !ok {
		return nil, fmt.Errorf("the security layers that the server offers: %w", err)
	}
	if len(token.Payload) != 4 || token.Payload[0]&noLayer == 0 {
		return nil, fmt.Errorf("the server wants a security layer: it offers %x", token.Payload)
	}
	et, err := crypto.GetEtype(x.key.KeyType)
	if err != nil {
		return nil, err
	}
	answer := gssapi.WrapToken{EC: uint16(et.GetHMACBitLength() / 8), Payload: []byte{noLayer, 0, 0, 0}}
	if x.subkey {
		answer.Flags = acceptorSubkey
	}
	if err := answer.SetCheckSum(x.key, keyusage.GSSAPI_INITIATOR_SEAL); err != nil {
		return nil, err
	}
	return answer.Marshal()
}

// Flags of a wrap token (RFC 4121, section 4.2.2).
const (
	sealed         = 2
	acceptorSubkey = 4
)

// unwrap reads a wrap token of the server that is not encrypted. It turns back what the server has rotated, which gokrb5
// does not.
func unwrap(said []byte) (*gssapi.WrapToken, error) {
	if len(said) > gssapi.HdrLen {
		head, body := said[:gssapi.HdrLen], said[gssapi.HdrLen:]
		n := int(binary.BigEndian.Uint16(head[6:])) % len(body)
		said = append(append(append([]byte{}, head...), body[n:]...), body[:n]...)
	}
	token := new(gssapi.WrapToken)
	if err := token.Unmarshal(said, true); err != nil {
		return nil, fmt.Errorf("the security layers that the server offers: %w", err)
	}
	if token.Flags&sealed != 0 {
		return nil, errors.New("the security layers that the server offers are encrypted")
	}
	return token, nil
}

// recovered makes an error of a panic of gokrb5. It panics if a cipher is shorter than any can be, which a server or a KDC
// may send.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("malformed message: %v", p)
	}
}
