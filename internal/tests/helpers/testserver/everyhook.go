package testserver

import (
	"context"
	"reflect"

	"github.com/turnstile-go/turnstile/session"
)

var contextType = reflect.TypeFor[context.Context]()

// EveryHook returns a Trace with each hook that there is. They, and the functions that they return, pass all that they are
// told to see, but for contexts, and return the context that they got.
func EveryHook(see func(hook string, arg any)) (hooks session.Trace) {
	v := reflect.ValueOf(&hooks).Elem()
	for i := range v.NumField() {
		v.Field(i).Set(hook(v.Type().Field(i).Name, v.Field(i).Type(), see))
	}
	return hooks
}

func hook(name string, f reflect.Type, see func(hook string, arg any)) reflect.Value {
	return reflect.MakeFunc(f, func(in []reflect.Value) []reflect.Value {
		for _, arg := range in {
			if !arg.Type().Implements(contextType) { // which others change meanwhile
				see(name, arg.Interface())
			}
		}
		out := make([]reflect.Value, f.NumOut())
		for i := range out {
			switch t := f.Out(i); {
			case t == contextType:
				out[i] = in[0]
			case t.Kind() == reflect.Func:
				out[i] = hook(name+" ended", t, see)
			default:
				out[i] = reflect.Zero(t)
			}
		}
		return out
	})
}
