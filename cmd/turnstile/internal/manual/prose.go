package manual

import (
	"regexp"
	"strings"
)

// prose writes a text of the help. Lines that are not indented are filled. Those that are indented are a list if they
// look like one, and stay as they are otherwise.
func (p *page) prose(text string) {
	for paragraph := range strings.SplitSeq(strings.Trim(text, "\n"), "\n\n") {
		lines := strings.Split(paragraph, "\n")
		filled := 0
		for filled < len(lines) && !strings.HasPrefix(lines[filled], " ") {
			filled++
		}
		if filled > 0 {
			p.line(".PP")
			p.text(strings.Join(lines[:filled], "\n"))
		}
		if rest := lines[filled:]; len(rest) > 0 {
			p.indented(rest)
		}
	}
}

// term is a line that begins an entry of a list: what it is about, two spaces, and a text.
var term = regexp.MustCompile(`^ +(\S+(?: \S+)*?)  +(\S.*)$`)

// indented writes lines that are indented.
func (p *page) indented(lines []string) {
	entries := list(lines)
	if entries == nil {
		p.verbatim(strings.Join(lines, "\n"))
		return
	}
	for _, e := range entries {
		p.entry(`\fB`+escape(e.term)+`\fR`, e.meaning)
	}
}

type entry struct{ term, meaning string }

// list returns the entries of a list, or nil if the lines are none. The text of an entry can go on in lines that are
// indented as far as it is.
func list(lines []string) (all []entry) {
	column := 0
	for _, line := range lines {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if column > 0 && indent >= column {
			all[len(all)-1].meaning += "\n" + strings.TrimSpace(line)
			continue
		}
		m := term.FindStringSubmatchIndex(line)
		if m == nil {
			return nil
		}
		all = append(all, entry{line[m[2]:m[3]], line[m[4]:m[5]]})
		column = m[4]
	}
	return all
}
