package manual

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

func sample() *cobra.Command {
	run := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "tool", Short: "A tool", Long: "Tool does it.\n\n.hidden files, too."}
	root.PersistentFlags().String("zk", "here", "`servers` to ask")
	c := &cobra.Command{
		Use: "run PATH", Short: "Run it", Run: run, Example: "  tool run /a -- 'b\\c'",
		Long: "Text that\ngoes on. It prints:\n  a     the first\n        value\n  b c   another\n\n" +
			"As it is:\n    x=1\n      y",
	}
	c.Flags().BoolP("try", "t", false, "do not wait")
	c.Flags().Int("n", 3, "how many `times`")
	root.AddCommand(c, &cobra.Command{Use: "exit-codes", Short: "Statuses", Long: "    0  Done."})
	return root
}

func TestPages(t *testing.T) {
	pages := Pages(sample(), Source{"1.2", time.Unix(0, 0)})
	if len(pages) != 2 {
		t.Fatalf("%d pages", len(pages))
	}
	for file, want := range map[string]string{
		"tool.1": `.TH "TOOL" 1 "1970-01-01" "turnstile 1.2"
.nh
.ad l
.ss 12 0
.SH "NAME"
tool \- A tool
.SH "SYNOPSIS"
.B tool
[flags] COMMAND [ARGUMENT...]
.SH "DESCRIPTION"
.PP
Tool does it.
.PP
\&.hidden files, too.
.SH "COMMANDS"
.TP
\fBtool\-run\fR(1)
Run it
.SH "OPTIONS OF ALL COMMANDS"
.TP
\fB\-\-zk\fR \fIservers\fR
servers to ask (default: here)
.SH "EXIT CODES"
.TP
\fB0\fR
Done.
`,
		"tool-run.1": `.TH "TOOL\-RUN" 1 "1970-01-01" "turnstile 1.2"
.nh
.ad l
.ss 12 0
.SH "NAME"
tool\-run \- Run it
.SH "SYNOPSIS"
.B tool run
PATH [flags]
.SH "DESCRIPTION"
.PP
Text that
goes on. It prints:
.TP
\fBa\fR
the first
value
.TP
\fBb c\fR
another
.PP
As it is:
.PP
.nf
    x=1
      y
.fi
.SH "OPTIONS"
.TP
\fB\-\-n\fR \fItimes\fR
how many times (default: 3)
.TP
\fB\-t\fR, \fB\-\-try\fR
do not wait
.SH "EXAMPLES"
.PP
.nf
  tool run /a \-\- 'b\ec'
.fi
.SH "SEE ALSO"
.BR tool (1),
for the options that all commands have, the exit statuses and the environment variables.
`,
	} {
		if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(pages[file], "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}
