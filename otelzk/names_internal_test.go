package otelzk

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/semconv/v1.43.0/dbconv"
)

// rowOf has the row of the README's table for the constants of names.go, by the first word of their names.
var rowOf = map[string]string{
	"span": "span", "request": "span", "attr": "attribute", "outcome": "outcome", "event": "event",
	"metric": "metric", "unit": "unit", "err": "error.type", "code": "error.type",
}

// names returns the values of all constants of names.go, by row.
func names(t *testing.T) map[string][]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "names.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]string)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, name := range spec.Names {
			word := regexp.MustCompile("^[a-z]+").FindString(name.Name)
			if row := rowOf[word]; row != "" {
				all[row] = append(all[row], texts(t, spec.Values[i])...)
			} else if name.Name != "ScopeName" && name.Name != "dbSystem" {
				t.Errorf("names.go: %s is of no known sort", name.Name)
			}
		}
		return true
	})
	return all
}

// texts returns the strings that an expression consists of.
func texts(t *testing.T, e ast.Expr) []string {
	t.Helper()
	var all []string
	ast.Inspect(e, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok {
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, text)
		}
		return true
	})
	return all
}

// table returns the texts in backquotes in the columns of names and units of the README's table, by row.
func table(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile("`[^`]+`")
	all := make(map[string][]string)
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 7 || strings.HasPrefix(cells[1], "---") {
			continue
		}
		for _, name := range quoted.FindAllString(cells[2], -1) {
			row := strings.TrimSpace(cells[1])
			all[row] = append(all[row], strings.Trim(name, "`"))
		}
		for _, unit := range quoted.FindAllString(cells[3], -1) {
			all["unit"] = append(all["unit"], strings.Trim(unit, "`"))
		}
	}
	return all
}

// The table has all names, and no others.
func TestNamesAreInTheTable(t *testing.T) {
	inCode, inTable := names(t), table(t)
	if got, want := slices.Sorted(maps.Keys(inTable)), slices.Sorted(maps.Keys(inCode)); !slices.Equal(got, want) {
		t.Errorf("rows %q, want %q", got, want)
	}
	for row := range inCode {
		got := slices.Compact(slices.Sorted(slices.Values(inTable[row])))
		want := slices.Compact(slices.Sorted(slices.Values(inCode[row])))
		if !slices.Equal(got, want) {
			t.Errorf("%s: README.md has\n%q\nnames.go\n%q", row, got, want)
		}
	}
}

// The names of request spans begin with the names that sessions give to requests.
func TestNamesOfRequests(t *testing.T) {
	files, err := filepath.Glob("../session/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	op := regexp.MustCompile(`(?:op: |read\(ctx, |write\(ctx, |traceRequest\([a-z.]*ctx, |on[A-Z]\w+: \{)"(\w+)"`)
	found := make(map[string]bool)
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range op.FindAllStringSubmatch(string(text), -1) {
			found[m[1]] = true
		}
	}
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, requestSpans) {
		t.Errorf("package session has\n%q\nnames.go\n%q", got, requestSpans)
	}
}

func TestConventions(t *testing.T) {
	for name, key := range map[string]string{
		attrDBSystem:    string(semconv.DBSystemNameKey),
		attrDBNamespace: string(semconv.DBNamespaceKey),
		attrDBOperation: string(semconv.DBOperationNameKey),
		attrDBStatus:    string(semconv.DBResponseStatusCodeKey),
		attrServerAddr:  string(semconv.ServerAddressKey),
		attrServerPort:  string(semconv.ServerPortKey),
		attrPeerAddr:    string(semconv.NetworkPeerAddressKey),
		attrPeerPort:    string(semconv.NetworkPeerPortKey),
		attrErrorType:   string(semconv.ErrorTypeKey),
		errOther:        semconv.ErrorTypeOther.Value.AsString(),
		metricRequest:   dbconv.ClientOperationDuration{}.Name(),
		unitSeconds:     dbconv.ClientOperationDuration{}.Unit(),
	} {
		if name != key {
			t.Errorf("%s, want %s", name, key)
		}
	}
}
