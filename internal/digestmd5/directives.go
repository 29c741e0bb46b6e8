package digestmd5

import (
	"fmt"
	"strings"
)

// longest bounds what either end says: in RFC 2831, a challenge has 2048 bytes and a response 4096.
const longest = 4096

// directives are what one end says, by name. There can be several realms.
type directives map[string][]string

// check fails unless each of these directives is there once, with that value if one is given.
func (d directives) check(want [][2]string) error {
	for _, w := range want {
		switch got := d[w[0]]; {
		case len(got) != 1:
			return fmt.Errorf("malformed: %d values of %s", len(got), w[0])
		case w[1] != "" && got[0] != w[1]:
			return fmt.Errorf("%s is %q, and not %q", w[0], got[0], w[1])
		}
	}
	return nil
}

func parse(said []byte) (directives, error) {
	if len(said) > longest {
		return nil, fmt.Errorf("malformed: %d bytes long", len(said))
	}
	d, rest := make(directives), string(said)
	for {
		rest = strings.TrimLeft(rest, spaces+",") // the list may have empty elements
		if rest == "" {
			return d, nil
		}
		name, after, ok := strings.Cut(rest, "=")
		name = strings.ToLower(strings.Trim(name, spaces))
		if !ok || name == "" || strings.ContainsAny(name, `,"\`+spaces) {
			return nil, fmt.Errorf("malformed: no directive at %.20q", rest)
		}
		value, left, err := parseValue(strings.TrimLeft(after, spaces))
		if err != nil {
			return nil, fmt.Errorf("malformed: %s: %w", name, err)
		}
		if rest = strings.TrimLeft(left, spaces); rest != "" && rest[0] != ',' {
			return nil, fmt.Errorf("malformed: no comma behind %s", name)
		}
		d[name] = append(d[name], value)
	}
}

const spaces = " \t\r\n"

func parseValue(s string) (value, rest string, err error) {
	if !strings.HasPrefix(s, `"`) {
		end := strings.IndexAny(s, ","+spaces)
		if end < 0 {
			end = len(s)
		}
		if end == 0 || strings.ContainsAny(s[:end], `"\`) {
			return "", "", fmt.Errorf("no value at %.20q", s)
		}
		return s[:end], s[end:], nil
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), s[i+1:], nil
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", "", fmt.Errorf("a quoted value without an end")
}

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
