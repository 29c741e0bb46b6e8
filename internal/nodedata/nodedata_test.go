package nodedata

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// What nodes say of their contenders: ours, those of Curator and kazoo, and those that say nothing.
func TestOf(t *testing.T) {
	labelled := Data{ID: Identity(), Label: "request 42", Traceparent: "00-1-2-01"}
	for _, c := range []struct {
		what, data string
		want       Data
	}{
		{"ours", string(labelled.Encode()), labelled},
		{"ours without more", string(Data{ID: Identity()}.Encode()), Data{ID: Identity()}},
		{"of an earlier state, which does not listen", `{"id":"a","revocable":false}`, Data{ID: "a", Revocable: new(bool)}},
		{"Curator's", "192.168.1.7", Data{ID: "192.168.1.7"}},
		{"kazoo's", "worker-3", Data{ID: "worker-3"}},
		{"none", "", Data{}},
		{"asked to give up", revokeMessage, Data{}},
		{"binary", "\x00\x01\xff", Data{}},
		{"escape sequences", "\x1b[2J", Data{}},
		{"escape sequences in JSON", `{"id":"\u001b[2J","label":"ok"}`, Data{Label: "ok"}},
		{"long", strings.Repeat("x", 1000), Data{}},
		{"JSON of another kind", `{"name":"a"}`, Data{ID: `{"name":"a"}`}},
		{"JSON that says nothing", `null`, Data{ID: `null`}},
		{"a number", `42`, Data{ID: `42`}},
		{"an empty id", `{"id":"","label":"a"}`, Data{Label: "a"}},
		{"other types", `{"id":7}`, Data{ID: `{"id":7}`}},
		{"long JSON", `{"id":"a","x":"` + strings.Repeat("x", longest) + `"}`, Data{}},
	} {
		if got := Of([]byte(c.data)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
	}
}

// Whatever other clients write, texts can be shown, and what was read is read again.
func FuzzOf(f *testing.F) {
	f.Add([]byte(`{"id":"host/1","label":"a","traceparent":"00-1-2-01","revocable":true}`))
	f.Add([]byte(revokeMessage))
	f.Add([]byte("{\"id\":\"\xff\xfe\"}"))
	f.Add([]byte("192.168.1.7"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := Of(data)
		for _, text := range []string{d.ID, d.Label, d.Traceparent} {
			if len(text) > longestText || !utf8.ValidString(text) || shown(text) != text {
				t.Errorf("%q of %q", text, data)
			}
		}
		if own := d.Encode(); len(own) <= longest && !reflect.DeepEqual(Of(own), d) {
			t.Errorf("%+v, and then %+v", d, Of(own))
		}
	})
}
