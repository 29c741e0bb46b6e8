package codec

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
)

// ErrBadFrame means that a server has sent something that no server sends.
var ErrBadFrame = errors.New("malformed frame from the server")

// ReplyHeader is the size of the header of an answer or an event: number, transaction, error code.
const ReplyHeader = 16

// Greeting is a server's answer to a [Hello].
type Greeting struct {
	TimeoutMillis int32
	Session       int64 // 0: the session has expired
	Password      [PasswordLength]byte
}

func (g Greeting) Timeout() time.Duration { return time.Duration(g.TimeoutMillis) * time.Millisecond }

// connectReply is the size of version, timeout, session and password. Servers of 3.4 and later add whether they are
// read-only.
const connectReply = 36

func ParseGreeting(frame []byte) (Greeting, error) {
	if len(frame) != connectReply && len(frame) != connectReply+1 {
		return Greeting{}, fmt.Errorf("%w: handshake of %d bytes", ErrBadFrame, len(frame))
	}
	d := Decoder{Rest: frame}
	d.Int32() // protocol version
	g := Greeting{TimeoutMillis: d.Int32(), Session: d.Int64()}
	if n := d.Int32(); n != PasswordLength {
		return Greeting{}, fmt.Errorf("%w: password of %d bytes", ErrBadFrame, n)
	}
	copy(g.Password[:], d.Bytes(PasswordLength))
	if g.Session != 0 && g.TimeoutMillis <= 0 {
		return Greeting{}, fmt.Errorf("%w: session timeout of %d ms", ErrBadFrame, g.TimeoutMillis)
	}
	return g, nil
}

// ParseSASLAnswer takes the answer to the step with that number, without its length. The token is nil if the server
// says nothing. A code other than CodeOK is a refusal.
func ParseSASLAnswer(frame []byte, xid int32) (token []byte, code int32, err error) {
	d := Decoder{Rest: frame}
	got := d.Int32()
	d.Int64() // transaction
	code = d.Int32()
	if d.Bad || got != xid {
		return nil, 0, fmt.Errorf("%w: no answer to a step of SASL", ErrBadFrame)
	}
	if code != CodeOK {
		return nil, code, nil
	}
	token = bytes.Clone(d.Buffer())
	if err := d.whole(); err != nil {
		return nil, 0, fmt.Errorf("%w: the answer to a step of SASL: %w", ErrBadFrame, err)
	}
	return token, code, nil
}

// Answer is what a server has answered to a request. It has the fields of that kind of request.
type Answer struct {
	Path    string   // create, sync
	Stat    *zk.Stat // exists, getData, getACL, setData, setACL, getChildren2
	Data    []byte   // getData; nil is Java's null
	Names   []string // getChildren2
	ACL     []zk.ACL // getACL
	Results []Result // multi
}

// Result is that of one operation of a multi.
type Result struct {
	Op   int32    // OpError: not carried out
	Code int32    // of an OpError
	Path string   // OpCreate
	Stat *zk.Stat // OpSetData
}

// DecodeAnswer decodes what follows the header of an answer. It takes nothing that is too short, and nothing with
// bytes left over: then an earlier number was wrong, and what looks like the names of all children are only some of
// them. The answer does not point into the frame.
func DecodeAnswer(op int32, d *Decoder) (a Answer, err error) {
	switch op {
	case OpCreate, OpSync:
		a.Path = d.String()
	case OpCreateContainer, OpCreateTTL:
		if a.Path = d.String(); len(d.Rest) > 0 { // servers add a stat
			DecodeStat(d)
		}
	case OpExists, OpSetData, OpSetACL:
		a.Stat = DecodeStat(d)
	case OpGetData:
		a.Data, a.Stat = slices.Clip(bytes.Clone(d.Buffer())), DecodeStat(d)
	case OpGetACL:
		d.List(func() { a.ACL = append(a.ACL, zk.ACL{Perms: d.Int32(), Scheme: d.String(), ID: d.String()}) })
		a.Stat = DecodeStat(d)
	case OpGetChildren2:
		a.Names, a.Stat = decodeNames(d), DecodeStat(d)
	case OpMulti:
		a.Results, err = decodeResults(d)
	}
	if err == nil {
		err = d.whole()
	}
	return a, err
}

// decodeNames does not take a list that is null: it would look like a directory without children.
func decodeNames(d *Decoder) []string {
	if head := (Decoder{Rest: d.Rest}); head.Int32() < 0 {
		d.Bad = true
	}
	return d.Strings()
}

func decodeResults(d *Decoder) (all []Result, err error) {
	for {
		op, last := d.MultiHeader()
		if last || d.Bad {
			return all, nil
		}
		r := Result{Op: op}
		switch op {
		case OpError:
			r.Code = d.Int32()
		case OpCreate:
			r.Path = d.String()
		case OpSetData:
			r.Stat = DecodeStat(d)
		case OpDelete, OpCheck:
		default:
			return nil, fmt.Errorf("a result of kind %d", op)
		}
		all = append(all, r)
	}
}

func DecodeStat(d *Decoder) *zk.Stat {
	return &zk.Stat{
		Czxid: d.Int64(), Mzxid: d.Int64(), Ctime: d.Int64(), Mtime: d.Int64(),
		Version: d.Int32(), Cversion: d.Int32(), Aversion: d.Int32(),
		EphemeralOwner: d.Int64(), DataLength: d.Int32(), NumChildren: d.Int32(), Pzxid: d.Int64(),
	}
}

func DecodeEvent(d *Decoder) (kind int32, path string, err error) {
	kind = d.Int32()
	d.Int32() // state of the session, which the connection tells better
	path = d.String()
	if wrong := d.whole(); wrong != nil {
		return kind, path, fmt.Errorf("%w: a watch event: %w", ErrBadFrame, wrong)
	}
	if kind < EventCreated || kind > EventChildrenChanged {
		return kind, path, fmt.Errorf("%w: a watch event of type %d", ErrBadFrame, kind)
	}
	return kind, path, nil
}
