// Package report writes measurements into a page of the documentation, so that figures there are
// never typed by hand.
package report

import (
	"fmt"
	"os"
	"strings"
)

// Section replaces the text of a page between the lines "<!-- name -->" and "<!-- /name -->".
// The page must have both, once each and in this order.
func Section(page, name, text string) error {
	old, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	made, err := replace(string(old), name, text)
	if err != nil {
		return fmt.Errorf("report: %s: %w", page, err)
	}
	if made == string(old) {
		return nil
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
