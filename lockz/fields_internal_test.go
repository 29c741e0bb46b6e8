package lockz

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// docs/lockz.md has a row for each field of the JSON, and no others: the names there are the API.
func TestFields(t *testing.T) {
	page, err := os.ReadFile("../docs/lockz.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) == 4 && strings.HasPrefix(cells[1], " `") {
			rows[strings.Trim(cells[1], " `")] = true
		}
	}
	fields := map[string]bool{}
	addFields(fields, "", reflect.TypeFor[pageJSON]())
	for name := range fields {
		if !rows[name] {
			t.Errorf("docs/lockz.md has no row for %s", name)
		}
	}
	for name := range rows {
		if !fields[name] {
			t.Errorf("there is no field %s", name)
		}
	}
}

// addFields adds the fields of a struct and of those in it, such as managers[].session.id.
func addFields(fields map[string]bool, of string, struc reflect.Type) {
	for i := range struc.NumField() {
		f := struc.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		name = of + name
		typ := f.Type
		switch typ.Kind() {
		case reflect.Pointer:
			typ = typ.Elem()
		case reflect.Slice:
			typ, name = typ.Elem(), name+"[]"
		}
		if typ.PkgPath() == reflect.TypeFor[pageJSON]().PkgPath() {
			addFields(fields, name+".", typ)
		} else {
			fields[name] = true
		}
	}
}
