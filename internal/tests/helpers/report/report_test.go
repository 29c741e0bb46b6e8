package report

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// repository returns a new repository with a page and a program, both of them committed.
func repository(t *testing.T, text string) (dir, page string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err) // not in CI: .ci/run asks git for the commit before anything else
	}
	t.Setenv("GIT_DIR", filepath.Join(t.TempDir(), "another")) // as in a hook
	dir = t.TempDir()
	page = filepath.Join(dir, "docs", "page.md")
	if err := os.Mkdir(filepath.Dir(page), 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, page, text)
	writeFile(t, filepath.Join(dir, "program.go"), "package program\n")
	for _, args := range [][]string{
		{"init", "-q"},
		{"add", "."},
		{"-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false", "commit", "-q", "-m", "begin"},
	} {
		if _, err := git(dir, args...); err != nil {
			t.Fatal(err)
		}
	}
	return dir, page
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A section says when it was made, and from what. A page that was written before it does not count as a change,
// and a program that was changed does.
func TestSection(t *testing.T) {
	dir, page := repository(t, "# A\n<!-- b -->\nold\n<!-- /b -->\nrest\n")
	commit, err := git(dir, "rev-parse", "--short=7", "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	for _, changes := range []string{"", "", " with changes"} {
		if changes != "" {
			writeFile(t, filepath.Join(dir, "program.go"), "package changed\n")
		}
		before := time.Now().UTC()
		if err := Section(page, "b", "\nnew\n"); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		want := func(at time.Time) string {
			return "# A\n<!-- b -->\n\nMade on " + at.Format(time.DateOnly) + " at " + commit + changes + ".\n\nnew\n\n<!-- /b -->\nrest\n"
		}
		if string(got) != want(before) && string(got) != want(time.Now().UTC()) {
			t.Errorf("page is %q, want %q", got, want(before))
		}
		if texts := Sections(string(got)); len(texts) != 1 || !Dated(texts["b"]) {
			t.Errorf("its sections are %q, want one with a date", texts)
		}
	}
	if err := Section(filepath.Join(dir, "none"), "b", ""); err == nil {
		t.Error("a page that does not exist was written")
	}
}

func TestSectionOutsideOfARepository(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err) // not in CI: .ci/run asks git for the commit before anything else
	}
	page := filepath.Join(t.TempDir(), "page.md")
	t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(filepath.Dir(page)))
	const text = "<!-- b -->\n<!-- /b -->\n"
	writeFile(t, page, text)
	if err := Section(page, "b", "new"); err == nil {
		t.Error("figures without a commit were written")
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != text {
		t.Errorf("page is %q, %v", got, err)
	}
}

func TestOldest(t *testing.T) {
	for text, want := range map[string]Stamp{
		"Made on 2026-11-25 at d581340.\n":                                         {"2026-11-25", "d581340", false},
		"Made on 2026-11-25 at d581340 with changes.\n":                            {"2026-11-25", "d581340", true},
		"Made on 2026-11-25 at d581340.\n| a | 2026-11-23 at 6a37c62 |\n":          {"2026-11-23", "6a37c62", false},
		"Made on 2026-11-25 at d581340.\n| a | 2026-11-25 at d581340 |\n| b | 1 |": {"2026-11-25", "d581340", false},
		"Made on 2026-11-25.\n":                                                    {},
	} {
		got, ok := Oldest(text)
		if got != want || ok != (want != Stamp{}) {
			t.Errorf("%q: %v, %v, want %v", text, got, ok, want)
		}
		if Dated(text) != ok {
			t.Errorf("%q: has a date is %v", text, Dated(text))
		}
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
