package digestmd5

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
)

// Server is the server's end of one exchange, for servers of tests.
type Server struct {
	passwords map[string]string
	step      int
	nonce     string
}

// NewServer begins an exchange with a server that has these passwords, by user.
func NewServer(passwords map[string]string) *Server { return &Server{passwords: passwords} }

// Response takes what the client says, and returns what to answer. The user is known once the client has proved it. An
// error ends the exchange.
func (s *Server) Response(said []byte) (answer []byte, user string, err error) {
	s.step++
	switch s.step {
	case 1:
		if len(said) > 0 {
			return nil, "", errors.New("an exchange is not continued")
		}
		s.nonce = rand.Text()
		return fmt.Appendf(nil, "realm=%s,nonce=%s,charset=utf-8,algorithm=md5-sess", quote(realm), quote(s.nonce)), "", nil
	case 2:
		return s.check(said)
	}
	return nil, "", errors.New("the exchange is over")
}

func (s *Server) check(said []byte) ([]byte, string, error) {
	d, err := parse(said)
	if err != nil {
		return nil, "", err
	}
	fields := make(map[string]string)
	for _, name := range []string{"username", "realm", "nonce", "cnonce", "nc", "digest-uri", "response", "qop", "charset"} {
		if fields[name], err = d.one(name); err != nil {
			return nil, "", err
		}
	}
	for name, want := range map[string]string{
		"realm": realm, "nonce": s.nonce, "nc": nonceCount, "digest-uri": uri, "qop": "auth", "charset": "utf-8",
	} {
		if fields[name] != want {
			return nil, "", fmt.Errorf("%s is %q, and not %q", name, fields[name], want)
		}
	}
	user := fields["username"]
	password, ok := s.passwords[user]
	a := answer{user: user, realm: realm, password: password, nonce: s.nonce, cnonce: fields["cnonce"], utf8: true}
	if subtle.ConstantTimeCompare([]byte(fields["response"]), []byte(a.value(method, uri))) == 0 || !ok {
		return nil, "", errors.New("no such user, or another password")
	}
	return []byte("rspauth=" + a.value("", uri)), user, nil
}
