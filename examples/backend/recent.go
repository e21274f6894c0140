package main

// recent is a map of limited size: where it is full, a new key takes the place of the oldest. Not safe for concurrent use.
type recent[V any] struct {
	limit  int
	values map[string]V
	order  []string // the keys, in order of age from next on
	next   int      // the oldest, once the map is full
}

func newRecent[V any](limit int) recent[V] {
	return recent[V]{limit: limit, values: make(map[string]V)}
}

func (r *recent[V]) get(key string) (V, bool) {
	v, ok := r.values[key]
	return v, ok
}

// put sets a value. A key that is there keeps its age.
func (r *recent[V]) put(key string, v V) {
	if _, ok := r.values[key]; !ok {
		if len(r.order) < r.limit {
			r.order = append(r.order, key)
		} else {
			delete(r.values, r.order[r.next])
			r.order[r.next] = key
			r.next = (r.next + 1) % r.limit
		}
	}
	r.values[key] = v
}
