// Package report writes measurements into a page of the documentation, so that figures there are
// never typed by hand. Each section says on which day and at which commit it was made.
package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Section replaces the text of a page between the lines "<!-- name -->" and "<!-- /name -->".
// The page must have both, once each and in this order. The first line of the section says when it was made,
// and from which commit of the repository that the page is in: "Made on 2026-11-25 at d581340."
func Section(page, name, text string) error {
	old, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	now, err := Now(filepath.Dir(page))
	if err != nil {
		return err
	}
	made, err := replace(string(old), name, fmt.Sprintf("Made on %v.\n\n%s", now, strings.TrimLeft(text, "\n")))
	if err != nil {
		return fmt.Errorf("report: %s: %w", page, err)
	}
	if err := os.WriteFile(page, []byte(made), 0o644); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

func replace(page, name, text string) (string, error) {
	begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->\n"
	if strings.Count(page, begin) != 1 || strings.Count(page, end) != 1 {
		return "", fmt.Errorf("want one line %q and one %q", begin, end)
	}
	head, rest, _ := strings.Cut(page, begin)
	_, tail, found := strings.Cut(rest, end)
	if !found {
		return "", fmt.Errorf("%q comes before %q", end, begin)
	}
	return head + begin + "\n" + strings.Trim(text, "\n") + "\n\n" + end + tail, nil
}
