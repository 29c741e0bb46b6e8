package lockz

import (
	"strings"
	"testing"
)

// Only the data that this module writes by default is shown, and addresses, which Curator writes.
func TestWhoIs(t *testing.T) {
	type who struct{ id, label, traceparent string }
	const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for data, want := range map[string]who{
		"":                    {},
		`{"id":"web-3/4711"}`: {id: "web-3/4711"},
		`{"id":"web-3/4711","label":"request 42","traceparent":"` + traceparent + `"}`: {"web-3/4711", "request 42", traceparent},
		`{"id":"web-3/4711","label":"` + strings.Repeat("a", 257) + `"}`:               {id: "web-3/4711"},
		`{"id":"web-3/4711","label":"two\nlines"}`:                                     {id: "web-3/4711"},
		`{"id":"web-3/4711","other":"` + strings.Repeat("a", 4096) + `"}`:              {},
		`{"id":"a word","label":"a label"}`:                                            {},
		`{"id":7}`:                                                                     {},
		`[]`:                                                                           {},
		"10.0.0.7":                                                                     {id: "10.0.0.7"},
		"2001:db8::1":                                                                  {id: "2001:db8::1"},
		"fe80::1%a word":                                                               {},
		"a word":                                                                       {},
		"\xff\xfe":                                                                     {},
		"__REVOKE__":                                                                   {},
	} {
		var got who
		if got.id, got.label, got.traceparent = whoIs([]byte(data)); got != want {
			t.Errorf("%.60q: %+v, want %+v", data, got, want)
		}
	}
}
