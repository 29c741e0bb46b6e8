package prose

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// rule is a kind of phrase that is not wanted, and what to write instead.
type rule struct {
	phrase  *regexp.Regexp
	instead string
}

var rules = []rule{
	{word(`whoever|whomever`), `name it: "the client that …"`},
	{word(`(one|ones|those|anyone|anybody|everyone|everybody|all|nobody) who`), `name it: "a waiter", "the holder", "clients that …"`},
	{word(`who waits?`), `name it: "a waiter"`},
	{word(`(to|of|by|for|from|with|behind|beside) whom`), `name it`},
	{word(`he|him|his|she|her|hers`), `a contender is a program: "it", "they", or its name`},
	{word(`(those|that) of (it|them)|what is left`), `name the thing`},
	{opening(`Who|Whose|Whom`), `the sentence needs a subject with a name: "A waiter …", "The holder …"`},
	{opening(`What (is|was|has|had|can|may|must|will|does|did)`), `the sentence needs a subject with a name`},
}

// word matches the alternatives as whole words, in upper and lower case. A phrase may go on
// in the next line.
func word(alternatives string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(` + strings.ReplaceAll(alternatives, " ", `\s+`) + `)\b`)
}

// opening matches the alternatives where a sentence begins that is no question.
func opening(alternatives string) *regexp.Regexp {
	return regexp.MustCompile(`(?:^\s*|[.!?:]\s+|\n\s*\n\s*|[-*|] )((?:` + strings.ReplaceAll(alternatives, " ", `\s+`) + `)\b)[^.!?]*(?:[.!]|$)`)
}

// finding is a phrase that a rule does not want, at an offset of a text.
type finding struct {
	offset int
	phrase string
	rule   rule
}

// check returns what the rules find in a text, in order.
func check(text string) []finding {
	text = blank(text)
	var found []finding
	for _, r := range rules {
		for _, m := range r.phrase.FindAllStringSubmatchIndex(text, -1) {
			found = append(found, finding{m[2], strings.Join(strings.Fields(text[m[2]:m[3]]), " "), r})
		}
	}
	slices.SortStableFunc(found, func(a, b finding) int { return cmp.Compare(a.offset, b.offset) })
	return found
}

// quoted is what is no prose: code, quotations, addresses of links, and HTML comments.
var quoted = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`|\"[^\"\n]{1,80}\"|\\]\\([^)\n]*\\)|<!--.*?-->")

// blank puts spaces in the place of what is quoted. Offsets and lines stay.
func blank(text string) string {
	return quoted.ReplaceAllStringFunc(text, func(q string) string {
		b := []byte(q)
		for i, c := range b {
			if c != '\n' {
				b[i] = ' '
			}
		}
		return string(b)
	})
}
