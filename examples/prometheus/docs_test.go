package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/session"
)

// docs is where the rules, their tests and the dashboard are, which these tests keep in step with otelzk.
const docs = "../../docs/prometheus/"

func file(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(name))
	expect.NoError(t, err)
	return string(text)
}

// firsts returns what the first group of a regular expression matches.
func firsts(text, expression string) (all []string) {
	for _, m := range regexp.MustCompile(expression).FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// promtool runs Prometheus' tool. Debian has it in the package prometheus.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	tool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("ZKTEST_REQUIRE_REAL") == "1" {
			t.Fatal(err)
		}
		t.Skipf("%v: make deps installs it", err)
	}
	if out, err := exec.Command(tool, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// Each rule fires in a case of the tests, is silent in another one, and names a section of the runbook.
func TestRules(t *testing.T) {
	promtool(t, "check", "rules", docs+"rules.yml")
	var cases string
	for _, name := range []string{"rules_test.yml", "jobs_test.yml"} {
		promtool(t, "test", "rules", docs+name)
		cases += file(t, docs+name)
	}
	rules := file(t, docs+"rules.yml")
	alerts := firsts(rules, `- alert: (\w+)`)
	for _, alert := range alerts {
		if !regexp.MustCompile(`alertname: ` + alert + `\n +exp_alerts:\n +- exp_labels`).MatchString(cases) {
			t.Errorf("%s fires in no case", alert)
		}
		if !strings.Contains(cases, "alertname: "+alert+", exp_alerts: []") {
			t.Errorf("%s is silent in no case", alert)
		}
	}
	sections := firsts(rules, `runbook_url: https://github.com/turnstile-go/turnstile/blob/main/docs/operations.md#(.+)`)
	if len(sections) != len(alerts) {
		t.Errorf("%d sections of the runbook for %d alerts", len(sections), len(alerts))
	}
	runbook := firsts(strings.ToLower(file(t, "../../docs/operations.md")), `(?m)^##+ (.+)$`)
	for _, s := range sections {
		if !slices.Contains(runbook, strings.ReplaceAll(s, "-", " ")) {
			t.Errorf("the runbook has no section %s", s)
		}
	}
}

// vocabulary is what is on a page: names of metrics and of labels, and the values of labels.
type vocabulary struct {
	names  map[string]bool
	values map[string]bool // name="value"
}

// words returns the vocabulary of a page on which everything has happened that the rules speak of.
func words(t *testing.T) vocabulary {
	t.Helper()
	read, hooks := page(t)
	for _, kind := range []string{"mutex", "election"} {
		_, end := hooks.Acquire(t.Context(), session.AcquireInfo{Kind: kind, Name: "invoice"})
		end(session.AcquireResult{})
		of := session.HoldInfo{Kind: kind, Name: "invoice"}
		hooks.Hold(t.Context(), of)(nil)
		_, released := hooks.Release(t.Context(), t.Context(), of)
		released(nil)
	}
	hooks.Job(t.Context(), session.JobInfo{Name: "nightly"})
	hooks.Job(t.Context(), session.JobInfo{Name: "nightly", Outcome: "ran", Ticks: 1})
	for _, op := range []string{"create", "delete", "multi"} {
		_, end := hooks.Request(t.Context(), session.RequestInfo{Op: op})
		end(nil)
	}
	v := vocabulary{map[string]bool{}, map[string]bool{}}
	for _, sample := range scrape(t, read) {
		v.names[regexp.MustCompile(`^\w+`).FindString(sample)] = true
		for _, m := range regexp.MustCompile(`(\w+)="([^"]*)"`).FindAllStringSubmatch(sample, -1) {
			v.names[m[1]], v.values[m[0]] = true, true
		}
	}
	return v
}

// check requires that all names and values of a query are on the page.
func (v vocabulary) check(t *testing.T, query string) {
	t.Helper()
	metrics := 0
	for _, name := range regexp.MustCompile(`\b(zklock|db|error)_\w+`).FindAllString(query, -1) {
		if !v.names[name] {
			t.Errorf("otelzk has no %s, in %s", name, query)
		}
		metrics++
	}
	if metrics == 0 {
		t.Errorf("no metric of otelzk in %s", query)
	}
	for _, m := range regexp.MustCompile(`((?:zklock|db)_\w+)!?=~?"([^"]*)"`).FindAllStringSubmatch(query, -1) {
		for value := range strings.SplitSeq(m[2], "|") {
			if want := fmt.Sprintf("%s=%q", m[1], value); !v.values[want] {
				t.Errorf("otelzk has no %s, in %s", want, query)
			}
		}
	}
}

// The rules use metrics, labels and values that otelzk exports. A query with a wrong name is no error for Prometheus.
func TestNamesInRules(t *testing.T) {
	v := words(t)
	rules := file(t, docs+"rules.yml")
	queries := firsts(rules, `expr: >-\n((?: {10}.*\n)+)`)
	if len(queries) == 0 || len(queries) != strings.Count(rules, "- alert:") {
		t.Fatalf("%d queries", len(queries))
	}
	for _, q := range queries {
		v.check(t, q)
	}
	for _, series := range firsts(file(t, docs+"rules_test.yml")+file(t, docs+"jobs_test.yml"), `series: '([^']*)'`) {
		name, labels, _ := strings.Cut(series, "{")
		if name != "stale_sessions_expired" && !v.names[name] || labels == "" { // the exception is a metric of ZooKeeper's servers
			t.Errorf("otelzk has no %s", series)
		}
	}
}

// The queries of the dashboard are good for Prometheus, and use the names of otelzk.
func TestDashboard(t *testing.T) {
	var dashboard struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	expect.NoError(t, json.Unmarshal([]byte(file(t, docs+"dashboard.json")), &dashboard))
	v := words(t)
	var queries strings.Builder
	for i, p := range dashboard.Panels {
		for j, q := range p.Targets {
			v.check(t, strings.ReplaceAll(q.Expr, `job=~"$job"`, ""))
			plain := strings.NewReplacer("$__rate_interval", "5m", "$job", ".*").Replace(q.Expr)
			fmt.Fprintf(&queries, "  - record: panel:%d:%d\n    expr: %q\n", i, j, plain)
		}
	}
	rules := filepath.Join(t.TempDir(), "rules.yml")
	expect.NoError(t, os.WriteFile(rules, []byte("groups:\n- name: dashboard\n  rules:\n"+queries.String()), 0o600))
	promtool(t, "check", "rules", rules)
}
