package otelzk

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// A program without otelzk links nothing of OpenTelemetry. A program with it links only the SDK that it chooses itself.
func TestImports(t *testing.T) {
	const otel = "go.opentelemetry.io/"
	files := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		ours := filepath.Dir(path) == filepath.Join("..", "otelzk")
		example := strings.HasPrefix(path, filepath.Join("..", "examples")+string(filepath.Separator))
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		files++
		for _, imp := range f.Imports {
			name := strings.Trim(imp.Path.Value, `"`)
			if strings.HasPrefix(name, otel) && !example && (!ours || strings.HasPrefix(name, otel+"otel/sdk")) {
				t.Errorf("%s imports %s", path, name)
			}
		}
		return nil
	})
	if err != nil || files == 0 {
		t.Errorf("%d files, %v", files, err)
	}
}
