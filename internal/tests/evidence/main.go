// Evidence says which of the generated tables in docs and README.md are older than the code that they speak of. For
// each of them it prints when the table was made and at which commit, how many lines of that code have changed since
// then, and the command that makes the table anew. It judges nothing: its exit status is always 0.
//
//	go run ./internal/tests/evidence
package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/report"
)

func main() {
	root, err := git(".", "rev-parse", "--show-toplevel")
	if err == nil {
		err = list(os.Stdout, root)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "evidence:", err)
	}
}

// list prints a line for each section of the pages below root.
func list(out io.Writer, root string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "section\tmade\tchanged since\tpage\tto make it anew")
	for _, s := range sections {
		made, changed := "without a date", "unknown"
		if stamp, err := s.made(root); err != nil {
			made = err.Error()
		} else if stamp != (report.Stamp{}) {
			made, changed = stamp.String(), s.changed(root, stamp.Commit)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", s.name, made, changed, s.page, s.renew)
	}
	return w.Flush()
}

// made returns the oldest stamp of the section, or none.
func (s section) made(root string) (report.Stamp, error) {
	page, err := os.ReadFile(filepath.Join(root, s.page))
	if err != nil {
		return report.Stamp{}, err
	}
	stamp, _ := report.Oldest(report.Sections(string(page))[s.name])
	return stamp, nil
}

// changed says how many lines of the section's code have changed since a commit. Tests do not count.
func (s section) changed(root, commit string) string {
	args := []string{"diff", "--numstat", "-M", commit + "..HEAD", "--"}
	for _, dir := range s.code {
		args = append(args, ":(glob)"+dir+"/*.go")
	}
	stat, err := git(root, append(args, ":(exclude,glob)**/*_test.go")...)
	if err != nil {
		return "unknown: no commit " + commit + " in this clone"
	}
	lines, files := count(stat)
	if files == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%d lines in %d files", lines, files)
}

// count adds up what git diff --numstat prints: added and deleted lines, and a name, for each file.
func count(stat string) (lines, files int) {
	for line := range strings.Lines(stat) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			continue
		}
		files++
		for _, field := range fields[:2] {
			n, _ := strconv.Atoi(field) // a binary file has a dash
			lines += n
		}
	}
	return lines, files
}

// git returns what a git command prints, without the last line break.
func git(dir string, args ...string) (string, error) {
	out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).Output()
	if err != nil {
		var said string
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			said = strings.TrimSpace(string(exit.Stderr))
		}
		return "", fmt.Errorf("git %s: %s", args[0], cmp.Or(said, err.Error()))
	}
	return strings.TrimSpace(string(out)), nil
}
