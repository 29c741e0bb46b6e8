package session

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// zkconn.go is the only file that uses zk.Conn, its options and its events: see
// docs/adr/0001-zk-conn.md.
func TestOneFileUsesZKConn(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	uses := 0
	for _, f := range files {
		name := f.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || !ofConn(sel) {
				return true
			}
			uses++
			if name != "zkconn.go" {
				t.Errorf("%s uses zk.%s", name, sel.Sel.Name)
			}
			return true
		})
	}
	if uses == 0 {
		t.Error("no file uses zk.Conn: the test looks for the wrong names")
	}
}

func ofConn(sel *ast.SelectorExpr) bool {
	if pkg, ok := sel.X.(*ast.Ident); !ok || pkg.Name != "zk" {
		return false
	}
	for _, prefix := range []string{"Conn", "With", "Event", "State", "HostProvider", "Logger"} {
		if strings.HasPrefix(sel.Sel.Name, prefix) {
			return true
		}
	}
	return false
}
