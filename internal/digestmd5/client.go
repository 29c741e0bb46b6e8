// Package digestmd5 is SASL's mechanism DIGEST-MD5 (RFC 2831), as ZooKeeper's servers speak it: both ends of an
// exchange, without a security layer.
//
//	client                     server
//	(nothing)          ->
//	                   <-      realm, nonce: the challenge
//	user, response     ->              the response proves the password
//	                   <-      rspauth: proves that the server has the password too
package digestmd5

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Name is the mechanism's name.
const Name = "DIGEST-MD5"

// The names that ZooKeeper's clients and servers have agreed on, whatever their hosts are called.
const (
	realm = "zk-sasl-md5"
	uri   = "zookeeper/" + realm
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

// Client is the client's end of one exchange.
type Client struct {
	user, password string
	step           int
	proof          string // that the server has the password
}

// NewClient begins an exchange. The client has no initial response.
func NewClient(user, password string) *Client { return &Client{user: user, password: password} }

// Challenge takes what the server says, and returns what to answer. done means that the server has proved that it
// has the password. nil is an answer of the server that has nothing.
func (c *Client) Challenge(said []byte) (response []byte, done bool, err error) {
	c.step++
	switch c.step {
	case 1:
		if len(said) == 0 {
			return nil, false, errors.New("the server has no challenge: it does not authenticate clients by SASL")
		}
		response, err = c.respond(said)
		return response, false, err
	case 2:
		if len(said) == 0 {
			return nil, false, errors.New("the server does not accept the user and the password")
		}
		return nil, true, c.verify(said)
	}
	return nil, false, errors.New("the server goes on after the exchange")
}

func (c *Client) respond(challenge []byte) ([]byte, error) {
	d, err := parse(challenge)
	if err != nil {
		return nil, err
	}
	nonce, err := d.one("nonce")
	if err != nil {
		return nil, err
	}
	switch algorithm, err := d.one("algorithm"); {
	case err != nil:
		return nil, err
	case algorithm != "md5-sess":
		return nil, fmt.Errorf("the algorithm is %q", algorithm)
	}
	if qop := d.all("qop"); len(qop) > 0 && !slices.ContainsFunc(qop, offersAuth) {
		return nil, fmt.Errorf("the server wants a security layer: qop is %q", qop)
	}
	charset := d.all("charset")
	if len(charset) > 0 && !slices.Equal(charset, []string{"utf-8"}) {
		return nil, fmt.Errorf("the charset is %q", charset)
	}
	a := answer{
		user: c.user, password: c.password, nonce: nonce, cnonce: rand.Text(), utf8: len(charset) > 0,
	}
	if realms := d.all("realm"); slices.Contains(realms, realm) {
		a.realm = realm
	} else if len(realms) > 0 {
		a.realm = realms[0]
	}
	if !a.utf8 && !latin1(a.user+a.realm+a.password) {
		return nil, errors.New("the server takes ISO 8859-1 only, which lacks characters of the user or the password")
	}
	c.proof = a.value("", uri)
	return a.encode(), nil
}

// offersAuth reports whether a list of qualities of protection has the one without a security layer.
func offersAuth(list string) bool {
	return slices.ContainsFunc(strings.Split(list, ","), func(q string) bool { return strings.Trim(q, " \t\r\n") == "auth" })
}

func (c *Client) verify(said []byte) error {
	d, err := parse(said)
	if err != nil {
		return err
	}
	proof, err := d.one("rspauth")
	if err != nil {
		return err
	}
	if subtle.ConstantTimeCompare([]byte(proof), []byte(c.proof)) == 0 {
		return errors.New("the server does not prove that it has the password")
	}
	return nil
}
