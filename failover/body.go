package failover

import (
	"bytes"
	"io"
	"reflect"
	"strings"
)

// memoryCloser is the type that http.NewRequest gives to a body in memory: io.NopCloser's, for one that can write itself.
var memoryCloser = reflect.TypeOf(io.NopCloser(new(bytes.Reader)))

// inMemory reports whether it is certain that reading a body cannot hang. A request's GetBody does not prove it, since anybody may
// set that, nor does the body's type, since io.NopCloser gives it to other readers too. So the reader inside is looked at, as
// net/http does it. A body in memory that is not recognised costs a goroutine, no more.
func inMemory(body io.Reader) bool {
	if v := reflect.ValueOf(body); v.Type() == memoryCloser && v.Kind() == reflect.Struct && v.NumField() == 1 && v.Field(0).CanInterface() {
		switch v.Field(0).Interface().(type) {
		case *bytes.Buffer, *bytes.Reader, *strings.Reader:
			return true
		}
	}
	return false
}
