package digestmd5

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"
)

// answer is a client's answer to a challenge, and what both ends compute from it.
type answer struct {
	user, realm, password string
	nonce, cnonce         string
	utf8                  bool // the charset of the exchange; otherwise it is ISO 8859-1
}

// value returns the response-value of RFC 2831, section 2.1.2.1. The method is AUTHENTICATE for the client's, and empty
// for the server's.
func (a *answer) value(method, uri string) string {
	secret := md5.Sum([]byte(narrow(a.user) + ":" + narrow(a.realm) + ":" + narrow(a.password)))
	a1 := hash(string(secret[:]) + ":" + a.nonce + ":" + a.cnonce)
	return hash(a1 + ":" + a.nonce + ":" + nonceCount + ":" + a.cnonce + ":auth:" + hash(method+":"+uri))
}

const (
	nonceCount = "00000001"
	method     = "AUTHENTICATE"
)

func hash(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}

// encode returns the answer as the client sends it.
func (a *answer) encode() []byte {
	text := func(s string) string {
		if !a.utf8 {
			s = narrow(s)
		}
		return quote(s)
	}
	var b strings.Builder
	if a.utf8 {
		b.WriteString("charset=utf-8,")
	}
	fmt.Fprintf(&b, "username=%s,", text(a.user))
	if a.realm != "" {
		fmt.Fprintf(&b, "realm=%s,", text(a.realm))
	}
	fmt.Fprintf(&b, "nonce=%s,nc=%s,cnonce=%s,digest-uri=%s,response=%s,qop=auth",
		quote(a.nonce), nonceCount, quote(a.cnonce), quote(uri), a.value(method, uri))
	return []byte(b.String())
}

// latin1 reports whether ISO 8859-1 has all characters of a string.
func latin1(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r > 0xff })
}

// narrow returns a string in ISO 8859-1 if that has all of its characters. The hashes want it so, also if the charset is
// UTF-8.
func narrow(s string) string {
	if !latin1(s) {
		return s
	}
	var b []byte
	for _, r := range s {
		b = append(b, byte(r))
	}
	return string(b)
}
