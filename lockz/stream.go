package lockz

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"iter"
	"slices"
	"strings"
)

const (
	piece  = 16 << 10 // how much of the JSON is written at once, in bytes
	indent = "  "     // of each level
)

// writeJSON writes the page as an indented json.Encoder would, if all holds and waits were in it. It describes and encodes
// them one by one. It fails if w does.
func (p *page) writeJSON(w io.Writer) error {
	s := &stream{Writer: bufio.NewWriterSize(w, piece)}
	s.encoder = json.NewEncoder(&s.encoded)
	s.object(p.pageJSON, "", listField{"managers", func(prefix string) {
		array(s, slices.Values(p.snapshots), prefix, func(m *snapshot, prefix string) {
			s.object(m.managerJSON, prefix,
				listField{"holds", func(prefix string) { array(s, m.heldLocks, prefix, s.hold) }},
				listField{"waits", func(prefix string) { array(s, m.waitsFor, prefix, s.wait) }})
		})
	}})
	_ = s.WriteByte('\n')
	return s.Flush()
}

// stream writes JSON. Its Writer keeps the first error, and then writes no more.
type stream struct {
	*bufio.Writer
	encoder *json.Encoder // to encoded
	encoded bytes.Buffer
}

// listField is a list of an object, and writes its elements.
type listField struct {
	name  string
	write func(prefix string)
}

// encode returns a value as JSON whose lines begin with prefix, but for the first. It is valid until the next call.
func (s *stream) encode(v any, prefix string) []byte {
	s.encoded.Reset()
	s.encoder.SetIndent(prefix, indent)
	_ = s.encoder.Encode(v) // a buffer and these types cannot fail
	return bytes.TrimSuffix(s.encoded.Bytes(), []byte("\n"))
}

// object writes a value whose lists are empty, with the elements of the lists, in the order of its fields.
func (s *stream) object(v any, prefix string, lists ...listField) {
	rest := string(s.encode(v, prefix))
	for _, l := range lists {
		// Quotation marks of strings are escaped, so that no string contains this.
		name := `"` + l.name + `": `
		before, after, _ := strings.Cut(rest, name+"[]")
		_, _ = s.WriteString(before + name)
		l.write(prefix + indent)
		rest = after
	}
	_, _ = s.WriteString(rest)
}

// array writes a list whose field is indented by prefix.
func array[T any](s *stream, all iter.Seq[T], prefix string, write func(element T, prefix string)) {
	before, end := "[", "[]"
	for element := range all {
		if _, err := s.WriteString(before + "\n" + prefix + indent); err != nil {
			return // there is no reader any more
		}
		write(element, prefix+indent)
		before, end = ",", "\n"+prefix+"]"
	}
	_, _ = s.WriteString(end)
}

func (s *stream) hold(h holdJSON, prefix string) { _, _ = s.Write(s.encode(&h, prefix)) }

func (s *stream) wait(w waitJSON, prefix string) { _, _ = s.Write(s.encode(&w, prefix)) }
