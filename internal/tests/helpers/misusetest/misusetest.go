// Package misusetest calls everything that a package exports in the wrong way. It finds methods by
// reflection, and types and functions in the list of the exported API, so that a test cannot forget one.
package misusetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

// Package describes the package under test.
type Package struct {
	// Name is the package's name. The texts of panics begin with it.
	Name string
	// Objects are the types that have a constructor, as pointers to structs. All of their methods
	// must panic on a zero value and a nil pointer, and go vet must report copies.
	Objects []Object
	// Values are zero values of all other types that have methods. Their methods must not panic.
	Values []any
	// Unmade are zero values of types that are no pointers, and that a method makes. All of their methods must panic.
	Unmade []any
	// Funcs are the functions that take a context, by name.
	Funcs map[string]func(context.Context)
}

// Object is one type.
type Object struct {
	Zero any // a pointer to a zero value
	Made any // made by the constructor; nil if no method takes a context
}

// patience bounds a call that should return at once.
const patience = testserver.Patience

var (
	contextType = reflect.TypeFor[context.Context]()
	lockerType  = reflect.TypeFor[sync.Locker]()
)

// Check tests the package whose directory is the working directory.
func Check(t *testing.T, p Package) {
	t.Helper()
	known := make(map[string]bool)
	for _, o := range p.Objects {
		known[reflect.TypeOf(o.Zero).Elem().Name()] = true
		p.checkUnmade(t, reflect.ValueOf(o.Zero))
		p.checkUnmade(t, reflect.Zero(reflect.TypeOf(o.Zero)))
		p.checkNilContext(t, o)
		if s := reflect.TypeOf(o.Zero).Elem(); !noCopy(s) {
			t.Errorf("go vet does not see that a %s must not be copied", s)
		}
	}
	for _, v := range p.Values {
		value := reflect.ValueOf(v)
		known[reflect.Indirect(value).Type().Name()] = true
		p.checkZeroValue(t, value)
	}
	for _, v := range p.Unmade {
		p.checkUnmade(t, reflect.ValueOf(v))
	}
	for name, f := range p.Funcs {
		known[name] = true
		wantPanic(t, name+" of a nil context", p.Name+": "+name+": nil context", func() { f(nil) })
	}
	names, err := exported(p.Name)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !known[name] {
			t.Errorf("the table has no entry for %s, which has methods or takes a context", name)
		}
	}
}

// checkUnmade calls all methods of an object that was not made by its constructor.
func (p Package) checkUnmade(t *testing.T, v reflect.Value) {
	t.Helper()
	name := v.Type().Name()
	if v.Kind() == reflect.Pointer {
		name = v.Type().Elem().Name()
	}
	for i := range v.NumMethod() {
		what := fmt.Sprintf("%s of (*%s)(%v)", v.Type().Method(i).Name, name, v)
		if v.Kind() != reflect.Pointer || !v.IsNil() {
			what = fmt.Sprintf("%s of %s{}", v.Type().Method(i).Name, name)
		}
		wantPanic(t, what, p.Name+": "+name+" not made by ", func() { call(v.Method(i), context.Background()) })
	}
}

// checkNilContext calls all methods that take a context with a nil one.
func (p Package) checkNilContext(t *testing.T, o Object) {
	t.Helper()
	v := reflect.ValueOf(o.Zero)
	if o.Made != nil {
		v = reflect.ValueOf(o.Made)
	}
	name := v.Type().Elem().Name()
	for i := range v.NumMethod() {
		method := v.Type().Method(i).Name
		switch {
		case !takesContext(v.Method(i).Type()):
		case o.Made == nil:
			t.Errorf("%s.%s takes a context: the entry needs a Made object", name, method)
		default:
			what := fmt.Sprintf("%s.%s", name, method)
			wantPanic(t, what+" of a nil context", p.Name+": "+what+": nil context", func() { call(v.Method(i), nil) })
		}
	}
}

// checkZeroValue calls all methods of a zero value.
func (p Package) checkZeroValue(t *testing.T, v reflect.Value) {
	t.Helper()
	name := reflect.Indirect(v).Type().Name()
	for i := range v.NumMethod() {
		what := name + "." + v.Type().Method(i).Name
		if got := attempt(func() { call(v.Method(i), context.Background()) }); got != nil {
			t.Errorf("%s of a zero value: %v", what, got)
		}
		if takesContext(v.Method(i).Type()) {
			wantPanic(t, what+" of a nil context", p.Name+": "+what+": nil context", func() { call(v.Method(i), nil) })
		}
	}
}

func takesContext(f reflect.Type) bool {
	for i := range f.NumIn() {
		if f.In(i) == contextType {
			return true
		}
	}
	return false
}

// call calls a method with ctx for each context, and zero values for all other arguments.
func call(method reflect.Value, ctx context.Context) {
	f := method.Type()
	var in []reflect.Value
	for i := range f.NumIn() {
		arg := reflect.Zero(f.In(i))
		switch {
		case f.IsVariadic() && i == f.NumIn()-1:
			continue
		case f.In(i) == contextType && ctx != nil:
			arg = reflect.ValueOf(ctx)
		}
		in = append(in, arg)
	}
	method.Call(in)
}

// attempt calls f and returns the value of its panic, nil if f returns. If f hangs, its goroutine is
// left behind.
func attempt(f func()) any {
	ended := make(chan any, 1)
	go func() {
		defer func() { ended <- recover() }()
		f()
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case got := <-ended:
		return got
	case <-timer.C:
		return fmt.Sprintf("hangs for %v", patience)
	}
}

// wantPanic fails unless f panics with a string that begins with want.
func wantPanic(t *testing.T, what, want string, f func()) {
	t.Helper()
	got := attempt(f)
	if text, ok := got.(string); !ok || len(text) < len(want) || text[:len(want)] != want {
		t.Errorf("%s: panic %v, want %q", what, got, want)
	}
}

// noCopy reports, by the rule of go vet's copylocks, whether copying a type is a mistake: the type is a
// lock or contains one.
func noCopy(t reflect.Type) bool {
	for t.Kind() == reflect.Array {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return false
	}
	if reflect.PointerTo(t).Implements(lockerType) && !t.Implements(lockerType) {
		return true
	}
	for i := range t.NumField() {
		if noCopy(t.Field(i).Type) {
			return true
		}
	}
	return false
}

var (
	methods  = regexp.MustCompile(`(?m)^method \(\*?(\w+)\)`)
	contexts = regexp.MustCompile(`(?m)^func (\w+)\(([^()]*, )?\w+ context\.Context`)
)

// exported returns the names of a package's exported types that have exported methods, and of its exported functions that
// take a context: from the list of package exportedapi, whose test compares it with the code.
func exported(name string) (names []string, err error) {
	list, err := os.ReadFile(filepath.Join("..", "internal", "tests", "conformance", "exportedapi", "testdata", name+".txt"))
	for _, pattern := range []*regexp.Regexp{methods, contexts} {
		for _, m := range pattern.FindAllStringSubmatch(string(list), -1) {
			names = append(names, m[1])
		}
	}
	return names, err
}
