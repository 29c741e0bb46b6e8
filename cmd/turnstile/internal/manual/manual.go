// Package manual writes the manual pages of a command line in roff, with the macros of man(7): a page for the
// program and one for each of its subcommands. All of their text is that of "turnstile help".
package manual

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Source is what pages say of where they come from.
type Source struct {
	Version string
	Date    time.Time
}

// Pages returns the pages of section 1 by their file names, such as turnstile-run.1.
func Pages(root *cobra.Command, s Source) map[string]string {
	pages := map[string]string{root.Name() + ".1": s.program(root)}
	for _, c := range subcommands(root) {
		pages[root.Name()+"-"+c.Name()+".1"] = s.subcommand(root, c)
	}
	return pages
}

// subcommands returns those that have a page.
func subcommands(root *cobra.Command) (all []*cobra.Command) {
	for _, c := range root.Commands() {
		if c.Runnable() && !c.Hidden {
			all = append(all, c)
		}
	}
	return all
}

// program is the page of the program. It has the flags of all commands, and the topics of its help.
func (s Source) program(root *cobra.Command) string {
	p := s.begin(root.Name(), root.Short)
	p.section("SYNOPSIS")
	p.line(".B " + escape(root.Name()))
	p.text("[flags] COMMAND [ARGUMENT...]")
	p.section("DESCRIPTION")
	p.prose(root.Long)
	p.section("COMMANDS")
	for _, c := range subcommands(root) {
		p.entry(reference(root, c), c.Short)
	}
	p.section("OPTIONS OF ALL COMMANDS")
	p.flags(root.PersistentFlags())
	for _, topic := range root.Commands() {
		if !topic.Runnable() && topic.Long != "" {
			p.section(strings.ToUpper(strings.ReplaceAll(topic.Name(), "-", " ")))
			p.prose(topic.Long)
		}
	}
	p.examples(root.Example)
	return p.String()
}

func (s Source) subcommand(root, c *cobra.Command) string {
	p := s.begin(root.Name()+"-"+c.Name(), c.Short)
	p.section("SYNOPSIS")
	p.line(".B " + escape(root.Name()+" "+c.Name()))
	p.text(strings.TrimSpace(strings.TrimPrefix(c.UseLine(), root.Name()+" "+c.Name())))
	p.section("DESCRIPTION")
	if c.Long != "" {
		p.prose(c.Long)
	} else {
		p.prose(c.Short + ".")
	}
	if c.LocalNonPersistentFlags().HasAvailableFlags() {
		p.section("OPTIONS")
		p.flags(c.LocalNonPersistentFlags())
	}
	p.examples(c.Example)
	p.section("SEE ALSO")
	p.line(`.BR ` + escape(root.Name()) + ` (1),`)
	p.text("for the options that all commands have, the exit statuses and the environment variables.")
	return p.String()
}

// reference is how a page names that of a subcommand.
func reference(root, c *cobra.Command) string {
	return `\fB` + escape(root.Name()+"-"+c.Name()) + `\fR(1)`
}

// page is a page in the making.
type page struct{ strings.Builder }

func (s Source) begin(name, short string) *page {
	p := &page{}
	date := s.Date.UTC().Format(time.DateOnly)
	p.line(fmt.Sprintf(`.TH "%s" 1 "%s" "%s"`, strings.ToUpper(escape(name)), date, escape("turnstile "+s.Version)))
	p.line(`.nh`) // names and flags are not to be hyphenated
	p.line(`.ad l`)
	p.line(`.ss 12 0`) // one space behind a sentence
	p.section("NAME")
	p.line(escape(name) + ` \- ` + escape(short))
	return p
}

func (p *page) line(s string) { p.WriteString(s + "\n") }

func (p *page) section(name string) { p.line(`.SH "` + name + `"`) }

// text writes lines of text. A line that begins with a dot or a quote would be a request.
func (p *page) text(s string) {
	for line := range strings.SplitSeq(s, "\n") {
		line = escape(line)
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			line = `\&` + line
		}
		p.line(line)
	}
}

// entry writes a line of a list: a term, which is roff, and what it means.
func (p *page) entry(term, meaning string) {
	p.line(".TP")
	p.line(term)
	p.text(meaning)
}

func (p *page) flags(set *pflag.FlagSet) {
	set.SortFlags = true
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		term := `\fB` + escape("--"+f.Name) + `\fR`
		if f.Shorthand != "" {
			term = `\fB` + escape("-"+f.Shorthand) + `\fR, ` + term
		}
		if value != "" && f.Value.Type() != "count" {
			term += ` \fI` + escape(value) + `\fR`
		}
		switch f.DefValue {
		case "", "false", "0", "0s", "[]":
		default:
			usage += " (default: " + f.DefValue + ")"
		}
		p.entry(term, usage)
	})
}

func (p *page) examples(text string) {
	if text != "" {
		p.section("EXAMPLES")
		p.verbatim(text)
	}
}

func (p *page) verbatim(text string) {
	p.line(".PP")
	p.line(".nf")
	p.text(text)
	p.line(".fi")
}

// escape returns a text of which roff prints each character as it is. A hyphen stays one that can be copied.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(s)
}
