package znode

import (
	"github.com/turnstile-go/turnstile/internal/codec"
)

// An Operation is one write as a client asks for it.
type Operation struct {
	Op      int32
	Path    string
	Data    []byte
	ACL     []ACLEntry
	Flags   int32
	TTL     int64
	Version int32
}

// Operation takes the body of a write of the given kind.
func (d *Decoder) Operation(op int32) Operation {
	o := Operation{Op: op, Path: d.String(), TTL: -1}
	switch op {
	case codec.OpCreate, codec.OpCreate2, codec.OpCreateContainer, codec.OpCreateTTL:
		o.Data, o.ACL, o.Flags = d.data(), d.ACL(), d.Int32()
		if op == codec.OpCreateTTL {
			o.TTL = d.Int64()
		}
	case codec.OpSetData:
		o.Data, o.Version = d.data(), d.Int32()
	case codec.OpSetACL:
		o.ACL, o.Version = d.ACL(), d.Int32()
	case codec.OpDelete, codec.OpCheck:
		o.Version = d.Int32()
	}
	return o
}

// Operations takes the body of a multi. An operation of any other kind than a write makes the decoder bad.
func (d *Decoder) Operations(r *Release) (all []Operation) {
	for {
		op, done := d.MultiHeader()
		if d.Bad || done {
			return all
		}
		switch op {
		case codec.OpCreate, codec.OpCreate2, codec.OpCreateContainer, codec.OpCreateTTL, codec.OpDelete, codec.OpSetData, codec.OpCheck:
			o := byFlags(d.Operation(op), r)
			if o.Op == opMisshapen && r.MultiChecksFlags {
				d.Bad = true
				return nil
			}
			all = append(all, o)
		default:
			d.Bad = true
			return nil
		}
	}
}

// byFlags gives a create within a multi the kind that its flags ask for. In a multi, ZooKeeper 3.8
// ignores the kind that the request names, except that it fails on a create whose flags ask for a TTL
// that the request does not have. 3.9 goes by the name too, if the flags ask for no container and no TTL.
func byFlags(o Operation, r *Release) Operation {
	switch o.Op {
	case codec.OpCreate, codec.OpCreate2, codec.OpCreateContainer, codec.OpCreateTTL:
	default:
		return o
	}
	named := o.Op
	switch o.Flags {
	case 4:
		o.Op, o.TTL = codec.OpCreateContainer, -1
	case 5, 6:
		o.Op = codec.OpCreateTTL
		if named != codec.OpCreateTTL {
			o.Op = opMisshapen
		}
	default:
		if r.MultiChecksFlags && (o.Flags < 0 || o.Flags > 6) {
			o.Op = opMisshapen
			return o
		}
		o.Op, o.TTL = codec.OpCreate, -1
		if r.MultiCreate2 && (named == codec.OpCreate2 || named == codec.OpCreateContainer) {
			o.Op = named
		}
	}
	return o
}

// opMisshapen is an operation that fails with CodeMarshallingError.
const opMisshapen int32 = -2

// nodeKind is the kind of node that a create's flags ask for.
type nodeKind struct {
	ephemeral, sequential, ttl bool
	owner                      int64
}

// kindOf reads the flags of a create. The kind of request alone decides whether the node
// becomes a container. A TTL needs both the kind of request and the flags.
func kindOf(o Operation) (nodeKind, error) {
	var k nodeKind
	switch o.Flags {
	case 0, 4: // persistent, container
	case 1:
		k.ephemeral = true
	case 2:
		k.sequential = true
	case 3:
		k.ephemeral, k.sequential = true, true
	case 5:
		k.ttl = true
	case 6:
		k.ttl, k.sequential = true, true
	default:
		return k, CodeBadArguments
	}
	if k.ttl != (o.Op == codec.OpCreateTTL) || k.ttl && (o.TTL <= 0 || o.TTL > MaxTTL) {
		return k, CodeBadArguments
	}
	switch o.Op {
	case codec.OpCreateContainer:
		k.ephemeral, k.owner = false, containerOwner
	case codec.OpCreateTTL:
		k.owner = ttlMark | o.TTL
	}
	return k, nil
}
