package session

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/misuse"
)

// The frames of requests. All paths have the chroot.

func head(op int32, full string) *codec.Encoder {
	e := codec.NewFrame()
	e.Int32(0) // the number, which the connection fills in
	e.Int32(op)
	e.String(full)
	return e
}

func reading(op int32, full string, watch bool) sent {
	e := head(op, full)
	e.Bool(watch)
	if op == codec.OpGetChildren2 {
		return sent{e.Frame(), checkNames}
	}
	return sent{e.Frame(), nil}
}

func syncing(full string) sent { return sent{head(codec.OpSync, full).Frame(), nil} }

const anyVersion = -1

func deleting(full string, version int32) sent {
	e := head(codec.OpDelete, full)
	e.Int32(version)
	return sent{e.Frame(), nil}
}

func making(full string, data []byte, acl []zk.ACL, m CreateMode) sent {
	op := int32(codec.OpCreate)
	switch {
	case m.hasTTL():
		op = codec.OpCreateTTL
	case m.flag == zk.FlagContainer:
		op = codec.OpCreateContainer
	}
	e := head(op, full)
	e.Buffer(data)
	e.Int32(int32(len(acl)))
	for _, one := range acl {
		e.Int32(one.Perms)
		e.String(one.Scheme)
		e.String(one.ID)
	}
	e.Int32(m.flag)
	if m.hasTTL() {
		e.Int64(m.ttl.Milliseconds())
	}
	return sent{e.Frame(), func(a *codec.Answer) error { return checkMade(full, m, a.Path) }}
}

// maxData bounds the data of one request. With the longest path and an ACL that is far below the 1 MiB that servers take
// by default: a server hangs up on a longer request without a word, and takes all other calls of the connection with it.
const maxData = 240<<10 - misuse.MaxPath

func checkData(data []byte) error {
	if len(data) > maxData {
		return misuse.Invalidf("%d bytes of data: the limit is %d", len(data), maxData)
	}
	return nil
}

// unwatching removes the watches of a kind at a path.
func unwatching(full string, kind int32) []byte {
	e := head(codec.OpRemoveWatches, full)
	e.Int32(kind)
	return e.Frame()
}

// checking checks the version of a node and changes nothing. A quorum agrees to it, also if there is no such node.
func checking(full string) sent {
	e := codec.NewFrame()
	e.Int32(0)
	e.Int32(codec.OpMulti)
	e.MultiHeader(codec.OpCheck, false, -1)
	e.String(full)
	e.Int32(anyVersion)
	e.MultiHeader(codec.OpError, true, -1)
	return sent{e.Frame(), nil}
}

// checkMade returns what is wrong with the path of a node that the server has made. If we believed it, we could hold, or
// delete, another client's node.
func checkMade(asked string, m CreateMode, made string) error {
	rest, ok := strings.CutPrefix(made, asked)
	number, err := strconv.ParseInt(rest, 10, 32)
	if m.sequential() {
		ok = ok && err == nil && fmt.Sprintf("%010d", number) == rest
	} else {
		ok = ok && rest == ""
	}
	if !ok {
		return fmt.Errorf("asked to create %q the server made %.200q", asked, made)
	}
	return nil
}

// checkResults returns what is wrong with the results of a multi. In one that was refused each result is an error.
func checkResults(kinds []int32, results []codec.Result) error {
	if len(results) != len(kinds) {
		return fmt.Errorf("%d results of a multi of %d operations", len(results), len(kinds))
	}
	refused := slices.ContainsFunc(results, func(r codec.Result) bool { return r.Code != codec.CodeOK })
	for i, r := range results {
		if refused && r.Op != codec.OpError || !refused && r.Op != kinds[i] {
			return fmt.Errorf("result %d of a multi is of kind %d, want kind %d", i, r.Op, kinds[i])
		}
	}
	return nil
}

// checkNames returns what is wrong with the names of children. A name with a slash, or a relative one, would lead
// elsewhere when it is appended to the directory's path.
func checkNames(a *codec.Answer) error {
	if i := slices.IndexFunc(a.Names, func(n string) bool {
		return n == "" || n == "." || n == ".." || strings.IndexByte(n, '/') >= 0
	}); i >= 0 {
		return fmt.Errorf("a child called %.200q", a.Names[i])
	}
	return nil
}
