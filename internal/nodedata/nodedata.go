// Package nodedata is the data of contenders' nodes: what this module writes, and what it understands of what others
// write.
package nodedata

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Data is what a node says about its contender. This module writes it as JSON.
type Data struct {
	ID          string `json:"id"`
	Label       string `json:"label,omitempty"`
	Traceparent string `json:"traceparent,omitempty"`
	// Revocable is false in the data of states before 0.1.0 whose holder does not hear a RevokeMessage. Others lack it.
	Revocable *bool `json:"revocable,omitempty"`
}

// New returns the data of a node of this process.
func New() Data { return Data{ID: Identity()} }

// Identity returns host/pid of this process.
var Identity = sync.OnceValue(func() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + "/" + strconv.Itoa(os.Getpid())
})

// usual is the data of nearly all nodes of this process.
var usual = sync.OnceValue(func() []byte { return New().marshal() })

// Encode returns the data of a node. Nobody may change it.
func (d Data) Encode() []byte {
	if d == New() {
		return usual()
	}
	return d.marshal()
}

func (d Data) marshal() []byte {
	b, _ := json.Marshal(d) // strings are always valid JSON
	return b
}

const (
	revokeMessage = "__REVOKE__" // queue.RevokeMessage
	longestText   = 256          // in bytes, of what is shown
	longest       = 4096         // in bytes, of what is parsed
)

// Of returns what a node's data says. Curator, kazoo, users and candidates of elections write a word or an address,
// which counts as the ID, as JSON without an id does. Texts that are too long or cannot be printed are left out.
func Of(data []byte) (d Data) {
	const none = "\x00" // stays if the data has no id
	d.ID = none
	if len(data) > longest || json.Unmarshal(data, &d) != nil || d.ID == none {
		d = Data{ID: string(data)}
	}
	if d.ID == revokeMessage {
		d.ID = ""
	}
	d.ID, d.Label, d.Traceparent = shown(d.ID), shown(d.Label), shown(d.Traceparent)
	return d
}

// Deaf reports whether the data says that the holder does not hear a RevokeMessage.
func (d Data) Deaf() bool { return d.Revocable != nil && !*d.Revocable }

func shown(text string) string {
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	if len(text) > longestText || !utf8.ValidString(text) || strings.ContainsFunc(text, unprintable) {
		return ""
	}
	return text
}
