package digestmd5

import (
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The example of RFC 2831, section 4.
func TestValue(t *testing.T) {
	a := exchange{user: "chris", realm: "elwood.innosoft.com", password: "secret", nonce: "OA6MG9tEQGm2hh", cnonce: "OA6MHXh6VqTrRk"}
	const service = "imap/elwood.innosoft.com"
	want := [2]string{"d388dad90d4bbd760a152321f2143af7", "ea40f60335c427b5527b84dbabcdfffd"}
	if got := [2]string{a.value(method, service), a.value("", service)}; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A client gets in with its password, whatever characters it has, and with no other.
func TestExchange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune{'a', '"', '\\', ',', '=', ' ', 'é', 'ÿ', 'ł', '語', '😀'})).Filter(
			func(s string) bool { return Check(s, s) == nil })
		user, password := text.Draw(t, "user"), text.Draw(t, "password")
		tried := rapid.OneOf(rapid.Just(password), text).Draw(t, "tried")
		s, c := NewServer(map[string]string{user: password, "other": "x"}), NewClient(user, tried)
		challenge, _, err := s.Response(nil)
		if err != nil {
			t.Fatal(err)
		}
		response, done, err := c.Challenge(challenge)
		if err != nil || done {
			t.Fatal(done, err)
		}
		proof, who, err := s.Response(response)
		if (err == nil) != (tried == password) || err == nil && who != user {
			t.Fatalf("the server says %q, %v", who, err)
		}
		if err != nil {
			return
		}
		if answer, done, err := c.Challenge(proof); answer != nil || !done || err != nil {
			t.Fatal(answer, done, err)
		}
		if _, _, err := c.Challenge(proof); err == nil {
			t.Fatal("the exchange goes on")
		}
	})
}

// What a client says to servers that are not those it should trust, or whose challenges it does not understand.
func TestClientRefuses(t *testing.T) {
	const good = `realm="zk-sasl-md5",nonce="n",charset=utf-8,algorithm=md5-sess`
	for name, c := range map[string]struct{ challenge, proof, why string }{
		"no SASL":                {"", "", "does not authenticate"},
		"no proof":               {good, "", "does not accept"},
		"a wrong proof":          {good, "rspauth=00000000000000000000000000000000", "does not prove"},
		"the client's own proof": {good, "response", "does not prove"},
		"no nonce":               {`algorithm=md5-sess`, "", "0 values of nonce"},
		"two nonces":             {good + `,nonce="m"`, "", "2 values of nonce"},
		"no algorithm":           {`nonce="n"`, "", "0 values of algorithm"},
		"another algorithm":      {`nonce="n",algorithm=md5`, "", `"md5"`},
		"a security layer":       {good + `,qop="auth-int,auth-conf"`, "", "security layer"},
		"another charset":        {good[:strings.Index(good, "utf-8")] + `utf-7,algorithm=md5-sess`, "", "utf-7"},
		"no charset":             {`nonce="n",algorithm=md5-sess`, "", "0 values of charset"},
		"no directive":           {`nonce`, "", "no directive"},
		"no end":                 {`nonce="n`, "", "without an end"},
		"no comma":               {`nonce="n"realm="r"`, "", "no comma"},
		"no value":               {`nonce=,algorithm=md5-sess`, "", "no value"},
		"too long":               {good + strings.Repeat(" ", longest), "", "bytes long"},
	} {
		t.Run(name, func(t *testing.T) {
			client := NewClient("us", "ł")
			response, done, err := client.Challenge([]byte(c.challenge))
			if err == nil {
				if c.proof == "response" {
					d, _ := parse(response)
					c.proof = "rspauth=" + d["response"][0]
				}
				_, done, err = client.Challenge([]byte(c.proof))
			}
			if err == nil || done && c.proof == "" || !strings.Contains(err.Error(), c.why) {
				t.Errorf("done %t, %v, want %q", done, err, c.why)
			}
		})
	}
}

func TestParse(t *testing.T) {
	got, err := parse([]byte(" , realm=\"a \\\"b\\\\\" ,REALM=c,\r\n\tnonce = x ,,"))
	if diff := cmp.Diff(directives{"realm": {`a "b\`, "c"}, "nonce": {"x"}}, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

// A challenge is malformed, or the answer to it says in the same words what the client has read.
func FuzzChallenge(f *testing.F) {
	for _, s := range []string{
		`realm="zk-sasl-md5",nonce="n",charset=utf-8,algorithm=md5-sess`, `nonce="a\"b",algorithm=md5-sess,charset=utf-8,realm="r",qop="auth"`,
		`nonce=n,algorithm="md5-sess",charset=utf-8,realm="a",realm="b",cipher="rc4,des"`, `rspauth=00`, `nonce="`, `,=`, "",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, challenge []byte) {
		c := NewClient("us\"er", "secret")
		response, done, err := c.Challenge(challenge)
		if done || (err == nil) == (response == nil) {
			t.Fatalf("%q, %t, %v", response, done, err)
		}
		if err != nil {
			return
		}
		asked, err := parse(challenge)
		if err != nil {
			t.Fatal(err)
		}
		said, err := parse(response)
		if err != nil {
			if len(response) > longest {
				return
			}
			t.Fatalf("%q: %v", response, err)
		}
		if said["nonce"][0] != asked["nonce"][0] || said["username"][0] != `us"er` {
			t.Fatalf("asked %q, said %q", asked, said)
		}
		if strings.ContainsFunc(string(response), unicode.IsControl) && !strings.ContainsFunc(string(challenge), unicode.IsControl) {
			t.Fatalf("%q", response)
		}
		if _, done, err := c.Challenge(challenge); done && err == nil {
			t.Fatal("the challenge is taken for a proof")
		}
	})
}
