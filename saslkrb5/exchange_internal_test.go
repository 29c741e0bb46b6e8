package saslkrb5

import (
	"bytes"
	"encoding/asn1"
	"strings"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/asnAppTag"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
)

var (
	began = time.Date(2026, 11, 1, 12, 0, 0, 123456000, time.UTC)
	keys  = [2]types.EncryptionKey{keyOf(1), keyOf(2)} // of the ticket, and one that the server has chosen
)

func keyOf(b byte) types.EncryptionKey {
	return types.EncryptionKey{KeyType: etypeID.AES256_CTS_HMAC_SHA1_96, KeyValue: bytes.Repeat([]byte{b}, 32)}
}

func begun() *exchange {
	return &exchange{ticket: &ticket{key: keys[0], ctime: began, cusec: 123456}, accepted: func() {}}
}

// reply is AP-REP as a token of GSSAPI.
func reply(t testing.TB, key types.EncryptionKey, part messages.EncAPRepPart) []byte {
	t.Helper()
	must := func(b []byte, err error) []byte {
		expect.NoError(t, err)
		return b
	}
	type plainPart struct { // without the subkey, which encoding/asn1 would write although it is empty
		CTime time.Time `asn1:"generalized,explicit,tag:0"`
		Cusec int       `asn1:"explicit,tag:1"`
	}
	plain := must(asn1.Marshal(plainPart{part.CTime, part.Cusec}))
	if len(part.Subkey.KeyValue) > 0 {
		plain = must(asn1.Marshal(struct {
			CTime  time.Time `asn1:"generalized,explicit,tag:0"`
			Cusec  int       `asn1:"explicit,tag:1"`
			Subkey struct {
				KeyType  int32  `asn1:"explicit,tag:0"`
				KeyValue []byte `asn1:"explicit,tag:1"`
			} `asn1:"explicit,tag:2"`
		}{part.CTime, part.Cusec, struct {
			KeyType  int32  `asn1:"explicit,tag:0"`
			KeyValue []byte `asn1:"explicit,tag:1"`
		}{part.Subkey.KeyType, part.Subkey.KeyValue}}))
	}
	sealed, err := crypto.GetEncryptedData(asn1tools.AddASNAppTag(plain, asnAppTag.EncAPRepPart), key, keyusage.AP_REP_ENCPART, 1)
	expect.NoError(t, err)
	return replyOf(t, sealed.EType, sealed.Cipher)
}

// replyOf is AP-REP with that cipher.
func replyOf(t testing.TB, etype int32, cipher []byte) []byte {
	t.Helper()
	type encrypted struct {
		EType  int32  `asn1:"explicit,tag:0"`
		Cipher []byte `asn1:"explicit,tag:2"`
	}
	rep, err := asn1.Marshal(struct {
		PVNO    int       `asn1:"explicit,tag:0"`
		MsgType int       `asn1:"explicit,tag:1"`
		EncPart encrypted `asn1:"explicit,tag:2"`
	}{5, 15, encrypted{etype, cipher}})
	expect.NoError(t, err)
	b, err := asn1.Marshal(asn1.ObjectIdentifier(gssapi.OIDKRB5.OID()))
	expect.NoError(t, err)
	b = append(append(b, 2, 0), asn1tools.AddASNAppTag(rep, asnAppTag.APREP)...)
	return asn1tools.AddASNAppTag(b, 0)
}

// offer is the token with the security layers, as a server wraps it.
func offer(t testing.TB, key types.EncryptionKey, payload []byte, flags byte, rotated int) []byte {
	t.Helper()
	w := gssapi.WrapToken{Flags: 1 | flags, EC: 12, Payload: payload}
	expect.NoError(t, w.SetCheckSum(key, keyusage.GSSAPI_ACCEPTOR_SEAL))
	b, err := w.Marshal()
	expect.NoError(t, err)
	body := b[gssapi.HdrLen:]
	cut := len(body) - rotated
	b = append(append(append([]byte{}, b[:gssapi.HdrLen]...), body[cut:]...), body[:cut]...)
	b[7] = byte(rotated)
	return b
}

var right = messages.EncAPRepPart{CTime: began.Truncate(time.Second), Cusec: 123456}

func TestChallenge(t *testing.T) {
	withSubkey := right
	withSubkey.Subkey = keys[1]
	late := right
	late.Cusec++
	none := []byte{7, 1, 0, 0}
	for name, c := range map[string]struct {
		first, second []byte
		why           string
	}{
		"right":                {reply(t, keys[0], right), offer(t, keys[0], none, 0, 0), ""},
		"a key of the server":  {reply(t, keys[0], withSubkey), offer(t, keys[1], none, acceptorSubkey, 0), ""},
		"rotated":              {reply(t, keys[0], right), offer(t, keys[0], none, 0, 12), ""},
		"no SASL":              {nil, nil, "does not authenticate"},
		"no proof":             {[]byte("x"), nil, "KRB5Token"},
		"another key":          {reply(t, keys[1], right), nil, "does not prove"},
		"another request":      {reply(t, keys[0], late), nil, "another request"},
		"layers of another":    {reply(t, keys[0], right), offer(t, keys[1], none, 0, 0), "checksum"},
		"the old key":          {reply(t, keys[0], withSubkey), offer(t, keys[0], none, 0, 0), "checksum"},
		"a layer is a must":    {reply(t, keys[0], right), offer(t, keys[0], []byte{6, 1, 0, 0}, 0, 0), "wants a security layer"},
		"no layers":            {reply(t, keys[0], right), nil, "shorter"},
		"encrypted":            {reply(t, keys[0], right), offer(t, keys[0], none, sealed, 0), "encrypted"},
		"layers without bytes": {reply(t, keys[0], right), offer(t, keys[0], []byte{}, 0, 0), "security layer"},
	} {
		t.Run(name, func(t *testing.T) {
			x := begun()
			answer, done, err := x.Challenge(c.first)
			if err == nil {
				if len(answer) > 0 || done {
					t.Errorf("%x, done %t", answer, done)
				}
				answer, done, err = x.Challenge(c.second)
			}
			switch {
			case c.why == "" && (err != nil || !done || len(answer) == 0):
				t.Errorf("%x, done %t, %v", answer, done, err)
			case c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why)):
				t.Errorf("%v, want %q", err, c.why)
			}
		})
	}
}

// A server can send anything, at both steps.
func FuzzChallenge(f *testing.F) {
	f.Add(reply(f, keys[0], right), offer(f, keys[0], []byte{7, 1, 0, 0}, 0, 0))
	f.Add([]byte{}, []byte{})
	f.Fuzz(func(t *testing.T, first, second []byte) {
		_, _, _ = begun().Challenge(first)
		x := begun()
		if _, _, err := x.Challenge(reply(t, keys[0], right)); err != nil {
			t.Fatal(err)
		}
		_, _, _ = x.Challenge(second)
	})
}

// A server cannot end the program: gokrb5 panics when a cipher is too short.
func TestShortCiphers(t *testing.T) {
	for n := range 60 {
		x := begun()
		if _, _, err := x.Challenge(replyOf(t, etypeID.AES256_CTS_HMAC_SHA1_96, make([]byte, n))); err == nil {
			t.Errorf("%d bytes are taken", n)
		}
	}
}
