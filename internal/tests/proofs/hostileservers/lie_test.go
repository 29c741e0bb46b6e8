package hostileservers

import (
	"path"
	"slices"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/zktest"
)

// lie is what a server says whenever it is asked. A script does each thing once.
type lie struct {
	// swallow reports whether the server does not carry out a request, whatever it answers.
	swallow func(r request) bool
	// answer returns the frame that replaces an answer without an error.
	answer func(l *link, r request, frame []byte) [][]byte
}

// request is what the victim has asked.
type request struct {
	xid  int32
	op   zktest.Op
	path string
}

func requestOf(frame []byte) request {
	return request{codec.Xid(frame), zktest.Op(codec.Op(frame)), string(codec.Path(frame))}
}

// divert returns the frame that replaces a request to the server.
func (l *link) divert(r request, frame []byte) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lie == nil || l.lie.swallow == nil || !l.lie.swallow(r) {
		return frame
	}
	// A harmless request, whose answer has the same number.
	b := words(nil, 0, uint32(r.xid), uint32(zktest.OpExists))
	return resized(append(appendText(b, "/"), 0))
}

// tell returns the frame that replaces one from the server, by the present lie.
func (l *link) tell(frame []byte, k frameKind) [][]byte {
	if k == aGreeting || k == anEvent || len(frame) < bodyAt {
		return [][]byte{frame}
	}
	l.askedMu.Lock()
	r, asked := l.asked[int32(word(frame, xidAt))]
	delete(l.asked, r.xid)
	l.askedMu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if k == aCreated && word(frame, codeAt) == 0 && len(frame) > bodyAt+4 {
		l.made = append(l.made, path.Base(string(frame[bodyAt+4:])))
	}
	if l.lie == nil || !asked || word(frame, codeAt) != 0 {
		return [][]byte{frame}
	}
	return l.lie.answer(l, r, frame)
}

// refusal returns an answer that says an error.
func refusal(frame []byte, code int32) [][]byte {
	b := slices.Clone(frame[:bodyAt])
	setWord(b, codeAt, uint32(code))
	return [][]byte{resized(b)}
}

// refusing is a lie: requests that fit are not carried out, and answered with an error.
func refusing(code int32, fits func(request) bool) *lie {
	return &lie{swallow: fits, answer: func(_ *link, r request, frame []byte) [][]byte {
		if fits(r) {
			return refusal(frame, code)
		}
		return [][]byte{frame}
	}}
}

// telling is a lie: after the data of a node that fits comes an event.
func telling(kind uint32, fits func(l *link, node string) bool) *lie {
	return &lie{answer: func(l *link, r request, frame []byte) [][]byte {
		if r.op != zktest.OpGetData || !fits(l, r.path) {
			return [][]byte{frame}
		}
		return [][]byte{frame, event(kind, 3, r.path)}
	}}
}

// listing is a lie about the names of children.
func listing(change func(l *link, r request, names []string) []string) *lie {
	return &lie{answer: func(l *link, r request, frame []byte) [][]byte {
		if r.op != zktest.OpGetChildren2 {
			return [][]byte{frame}
		}
		rest := codec.Decoder{Rest: frame[bodyAt:]}
		made := codec.Encoder{B: slices.Clone(frame[:bodyAt])}
		made.Strings(change(l, r, rest.Strings()))
		return [][]byte{resized(append(made.B, rest.Rest...))}
	}}
}

// data is a lie about the data of a node: that there is none, or an older version.
func data(fits func(request) bool, change func(frame []byte, stat int) []byte) func(request, []byte) [][]byte {
	return func(r request, frame []byte) [][]byte {
		if r.op != zktest.OpGetData || !fits(r) {
			return [][]byte{frame}
		}
		stat := bodyAt + 4 + max(0, int(int32(word(frame, bodyAt))))
		return [][]byte{resized(change(slices.Clone(frame), stat))}
	}
}
