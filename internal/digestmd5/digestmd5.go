// Package digestmd5 is SASL's mechanism DIGEST-MD5 (RFC 2831), as ZooKeeper's servers speak it: in UTF-8 and without
// a security layer.
//
//	client                     server
//	(nothing)          ->
//	                   <-      realm, nonce: the challenge
//	user, response     ->              the response proves the password
//	                   <-      rspauth: proves that the server has the password too
package digestmd5

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Name is the name of the mechanism.
const Name = "DIGEST-MD5"

const (
	// realm and uri are what ZooKeeper's clients and servers have agreed on, whatever their hosts are called.
	realm = "zk-sasl-md5"
	uri   = "zookeeper/" + realm

	method     = "AUTHENTICATE"
	nonceCount = "00000001"
)

// Check returns what is wrong with a user.
func Check(user, password string) error {
	switch {
	case user == "":
		return errors.New("the user has no name")
	case password == "":
		return errors.New("the user has no password")
	case strings.ContainsFunc(user, unicode.IsControl):
		return errors.New("the name of the user has control characters")
	}
	return nil
}

type exchange struct{ user, realm, password, nonce, cnonce string }

// value returns the response-value of RFC 2831, section 2.1.2.1. For the server's proof, method is empty.
func (x exchange) value(method, uri string) string {
	secret := md5.Sum([]byte(narrow(x.user) + ":" + narrow(x.realm) + ":" + narrow(x.password)))
	hash := func(s string) string {
		sum := md5.Sum([]byte(s))
		return hex.EncodeToString(sum[:])
	}
	a1 := hash(string(secret[:]) + ":" + x.nonce + ":" + x.cnonce)
	return hash(a1 + ":" + x.nonce + ":" + nonceCount + ":" + x.cnonce + ":auth:" + hash(method+":"+uri))
}

// narrow returns a string in ISO 8859-1 if that can be. The hashes want it so, although the charset is UTF-8.
func narrow(s string) string {
	var b []byte
	for _, r := range s {
		if r > 0xff || !utf8.ValidString(s) {
			return s
		}
		b = append(b, byte(r))
	}
	return string(b)
}

// Client is the client's end of one exchange.
type Client struct {
	user, password string
	step           int
	proof          string // that the server has the password
}

// NewClient begins an exchange.
func NewClient(user, password string) *Client { return &Client{user: user, password: password} }

// Challenge takes what the server says, nil for nothing, and returns what to answer. done means that the server has
// proved that it has the password.
func (c *Client) Challenge(said []byte) (response []byte, done bool, err error) {
	c.step++
	switch {
	case c.step > 2:
		return nil, false, errors.New("the server goes on after the exchange")
	case len(said) == 0 && c.step == 1:
		return nil, false, errors.New("the server has no challenge: it does not authenticate clients by SASL")
	case len(said) == 0:
		return nil, false, errors.New("the server does not accept the user and the password")
	}
	d, err := parse(said)
	if err != nil {
		return nil, false, err
	}
	if c.step == 1 {
		response, err = c.respond(d)
		return response, false, err
	}
	if len(d["rspauth"]) != 1 || subtle.ConstantTimeCompare([]byte(d["rspauth"][0]), []byte(c.proof)) == 0 {
		return nil, true, errors.New("the server does not prove that it has the password")
	}
	return nil, true, nil
}

func (c *Client) respond(d directives) ([]byte, error) {
	err := d.check([][2]string{{"nonce", ""}, {"algorithm", "md5-sess"}, {"charset", "utf-8"}, {"realm", ""}})
	if err != nil {
		return nil, err
	}
	offered := strings.FieldsFunc(strings.Join(d["qop"], ","), func(r rune) bool { return strings.ContainsRune(spaces+",", r) })
	if len(d["qop"]) > 0 && !slices.Contains(offered, "auth") {
		return nil, fmt.Errorf("the server wants a security layer: qop is %q", d["qop"])
	}
	x := exchange{c.user, d["realm"][0], c.password, d["nonce"][0], rand.Text()}
	c.proof = x.value("", uri)
	return fmt.Appendf(nil, "charset=utf-8,username=%s,realm=%s,nonce=%s,nc=%s,cnonce=%s,digest-uri=%s,response=%s,qop=auth",
		quote(x.user), quote(x.realm), quote(x.nonce), nonceCount, quote(x.cnonce), quote(uri), x.value(method, uri)), nil
}

// Server is the server's end of one exchange, for servers of tests.
type Server struct {
	passwords map[string]string
	step      int
	nonce     string
}

// NewServer returns a server that has these passwords, by user.
func NewServer(passwords map[string]string) *Server { return &Server{passwords: passwords} }

// Response takes what the client says, and returns what to answer, and the user once that is proved. An error ends
// the exchange.
func (s *Server) Response(said []byte) (answer []byte, user string, err error) {
	s.step++
	switch {
	case s.step > 2:
		return nil, "", errors.New("the exchange is over")
	case s.step == 1 && len(said) > 0:
		return nil, "", errors.New("an exchange is not continued")
	case s.step == 1:
		s.nonce = rand.Text()
		return fmt.Appendf(nil, "realm=%s,nonce=%s,charset=utf-8,algorithm=md5-sess", quote(realm), quote(s.nonce)), "", nil
	}
	d, err := parse(said)
	if err != nil {
		return nil, "", err
	}
	if err := d.check([][2]string{
		{"realm", realm}, {"nonce", s.nonce}, {"nc", nonceCount}, {"digest-uri", uri}, {"qop", "auth"}, {"charset", "utf-8"},
		{"username", ""}, {"cnonce", ""}, {"response", ""},
	}); err != nil {
		return nil, "", err
	}
	user = d["username"][0]
	password, ok := s.passwords[user]
	x := exchange{user, realm, password, s.nonce, d["cnonce"][0]}
	if subtle.ConstantTimeCompare([]byte(d["response"][0]), []byte(x.value(method, uri))) == 0 || !ok {
		return nil, "", errors.New("no such user, or another password")
	}
	return []byte("rspauth=" + x.value("", uri)), user, nil
}
