package rttest

import (
	"net/http"
	"reflect"
	"slices"
)

// snapshot is a request as it was.
type snapshot struct {
	itself  http.Request  // its fields: what they point to may have changed
	content *http.Request // a deep copy
	spare   []string      // the part of a header's slice that is not in use yet
}

// spare is the header whose values leave room for more: who appends to them in place writes to the caller's memory.
const spare = "X-Spare"

func take(req *http.Request) *snapshot {
	s := &snapshot{itself: *req, content: req.Clone(req.Context())}
	if values := req.Header[spare]; values != nil {
		s.spare = slices.Clone(values[:cap(values)])
	}
	return s
}

// changes names the fields of the request that are not as they were.
func (s *snapshot) changes(req *http.Request) (changed []string) {
	now, was, content := reflect.ValueOf(req).Elem(), reflect.ValueOf(&s.itself).Elem(), reflect.ValueOf(s.content).Elem()
	for i := range now.NumField() {
		field := now.Type().Field(i)
		if !same(now.Field(i), was.Field(i)) ||
			field.IsExported() && isPlain(field.Name) && !reflect.DeepEqual(now.Field(i).Interface(), content.Field(i).Interface()) {
			changed = append(changed, field.Name)
		}
	}
	if values := req.Header[spare]; s.spare != nil && !slices.Equal(values[:cap(values)], s.spare) {
		changed = append(changed, "Header, beyond the end of a slice")
	}
	return changed
}

// isPlain tells fields that can be compared by content: not bodies, functions, channels.
func isPlain(field string) bool {
	switch field {
	case "Body", "GetBody", "Cancel", "TLS", "Response":
		return false
	}
	return true
}

// same reports whether two fields hold the same value, or the same reference.
func same(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Map, reflect.Func:
		return a.Pointer() == b.Pointer()
	case reflect.Slice:
		return a.Pointer() == b.Pointer() && a.Len() == b.Len()
	case reflect.Interface:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		if !a.Comparable() || !b.Comparable() { // a function's type, say: nothing more is to be known
			return a.Elem().Type() == b.Elem().Type()
		}
	}
	return a.Equal(b)
}
