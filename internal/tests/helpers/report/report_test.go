package report

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSection(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("# A\n<!-- b -->\nold\n<!-- /b -->\nrest\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second changes nothing
		if err := Section(page, "b", "\nnew\n"); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if want := "# A\n<!-- b -->\n\nnew\n\n<!-- /b -->\nrest\n"; string(got) != want {
		t.Errorf("page is %q, want %q", got, want)
	}
	if err := Section(filepath.Join(t.TempDir(), "none"), "b", ""); err == nil {
		t.Error("a page that does not exist was written")
	}
}

func TestSectionRefuses(t *testing.T) {
	for name, page := range map[string]string{
		"none":  "text\n",
		"open":  "<!-- b -->\n",
		"twice": "<!-- b -->\n<!-- /b -->\n<!-- b -->\n<!-- /b -->\n",
		"order": "<!-- /b -->\n<!-- b -->\n",
	} {
		if got, err := replace(page, "b", "x"); err == nil {
			t.Errorf("%s: made %q of it", name, got)
		}
	}
}
