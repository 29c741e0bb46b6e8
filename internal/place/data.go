package place

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/turnstile-go/turnstile/internal/label"
	"github.com/turnstile-go/turnstile/kinds"
)

// nodeData is the data of a node by default, as JSON. It says who contends.
type nodeData struct {
	ID          string `json:"id"`
	Label       string `json:"label,omitempty"`
	Traceparent string `json:"traceparent,omitempty"`
	// Revocable says whether a holder by this node hears a RevokeMessage. It is nil in data that does
	// not say, as that of other libraries.
	Revocable *bool `json:"revocable,omitempty"`
}

// listens returns what the data says of the contender.
func (d nodeData) listens() kinds.Revocable {
	switch {
	case d.Revocable == nil:
		return kinds.RevocableUnknown
	case *d.Revocable:
		return kinds.RevocableYes
	}
	return kinds.RevocableNo
}

// yes and no are for nodeData.Revocable. Nobody changes them.
var yes, no = true, false

// Identity returns host/pid of this process, as in the default data of a node.
func Identity() string { return identity() }

var identity = sync.OnceValue(func() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + "/" + strconv.Itoa(os.Getpid())
})

// usual is the data of nearly all nodes of this process. Nobody changes it.
var usual = sync.OnceValue(func() []byte { return nodeData{Revocable: &no}.marshal() })

// encode returns the data of a node of this process.
func (d nodeData) encode() []byte {
	if d == (nodeData{Revocable: &no}) {
		return usual()
	}
	return d.marshal()
}

func (d nodeData) marshal() []byte {
	d.ID = identity()
	b, err := json.Marshal(d)
	if err != nil {
		return nil // cannot happen: strings are always valid JSON
	}
	return b
}

// whoIs returns what a node's data says about its contender. Curator, kazoo and users of WithData
// write a word or an address, which counts as the ID. It returns the zero value if the data says
// nothing that a message can show.
func whoIs(data []byte) nodeData {
	var d nodeData
	if json.Unmarshal(data, &d) == nil {
		return nodeData{ID: shown(d.ID), Label: shown(d.Label), Traceparent: shown(d.Traceparent), Revocable: d.Revocable}
	}
	if text := string(data); text != kinds.RevokeMessage {
		d.ID = shown(text)
	}
	return d
}

// Deaf reports whether a node with this data belongs to a contender that is known to ignore a RevokeMessage.
func Deaf(data []byte) bool { return whoIs(data).listens() == kinds.RevocableNo }

// shown returns text if it fits into a message: it is short and has no control characters.
func shown(text string) string {
	if len(text) > label.Longest || !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return ""
	}
	return text
}
