package place

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/label"
	"github.com/turnstile-go/turnstile/kinds"
	"github.com/turnstile-go/turnstile/session"
)

// What nodes say of their contenders: ours, those of Curator and kazoo, and those that say nothing.
func TestWhoIs(t *testing.T) {
	for _, c := range []struct {
		what, data string
		want       nodeData
	}{
		{"ours", string(nodeData{Label: "request 42", Traceparent: "00-1-2-01"}.encode()), nodeData{Identity(), "request 42", "00-1-2-01", nil}},
		{"ours without a label", string(nodeData{}.encode()), nodeData{ID: Identity()}},
		{"ours that listens", string(nodeData{Revocable: &yes}.encode()), nodeData{ID: Identity(), Revocable: &yes}},
		{"ours that does not listen", string(nodeData{Revocable: &no}.encode()), nodeData{ID: Identity(), Revocable: &no}},
		{"Curator's", "192.168.1.7", nodeData{ID: "192.168.1.7"}},
		{"kazoo's", "worker-3", nodeData{ID: "worker-3"}},
		{"none", "", nodeData{}},
		{"asked to give up", kinds.RevokeMessage, nodeData{}},
		{"binary", "\x00\x01\xff", nodeData{}},
		{"escape sequences", "\x1b[2J", nodeData{}},
		{"escape sequences in JSON", `{"id":"\u001b[2J","label":"ok"}`, nodeData{Label: "ok"}},
		{"long", strings.Repeat("x", 1000), nodeData{}},
		{"JSON of another kind", `{"name":"a"}`, nodeData{}},
	} {
		if got := whoIs([]byte(c.data)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
	}
}

// The node of a Local has neither a label nor a traceparent, although the hook is asked for one.
func TestDescribe(t *testing.T) {
	ctx := label.With(context.Background(), "request 42")
	asked := 0
	hooks := &session.Trace{Traceparent: func(context.Context) string { asked++; return "00-1-2-01" }}
	listens := func(*Lease) {}
	for _, c := range []struct {
		r    Request
		want nodeData
	}{
		{Request{}, nodeData{Label: "request 42", Traceparent: "00-1-2-01", Revocable: &no}},
		{Request{Revoked: listens}, nodeData{Label: "request 42", Traceparent: "00-1-2-01", Revocable: &yes}},
		{Request{handedOn: true}, nodeData{Revocable: &no}},
		{Request{handedOn: true, Revoked: listens}, nodeData{Revocable: &yes}},
	} {
		if got := c.r.describe(ctx, hooks); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v, want %+v", got, c.want)
		}
	}
	if asked != 4 {
		t.Errorf("the hook was asked %d times, want 4", asked)
	}
}
