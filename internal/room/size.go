package room

// Size is an amount of room.
type Size struct {
	Nodes int
	Bytes int // of the paths, as the transaction lists them
}

// SizeOf returns the room of a node that is to be created, by the full path that is asked for, the chroot
// included. The transaction has the length of each path in four bytes.
func SizeOf(full string, sequential bool) Size {
	bytes := 4 + len(full)
	if sequential {
		bytes += sequenceDigits
	}
	return Size{1, bytes}
}

// sequenceDigits is how long the number is that a server adds to the path of a sequential node.
const sequenceDigits = 10

func (a Size) plus(b Size) Size  { return Size{a.Nodes + b.Nodes, a.Bytes + b.Bytes} }
func (a Size) minus(b Size) Size { return Size{a.Nodes - b.Nodes, a.Bytes - b.Bytes} }
func (a Size) fits(b Size) bool  { return a.Nodes <= b.Nodes && a.Bytes <= b.Bytes }

// least returns the smaller number of nodes, and of bytes.
func (a Size) least(b Size) Size { return Size{min(a.Nodes, b.Nodes), min(a.Bytes, b.Bytes)} }

// beyond returns how much a is more than b, in nodes and in bytes.
func (a Size) beyond(b Size) Size { return Size{max(a.Nodes-b.Nodes, 0), max(a.Bytes-b.Bytes, 0)} }
