package auth

// sealed holds a value that fmt and slog cannot show, even as a field of a struct of somebody else's, whose methods fmt does not
// call: they do not look into functions. nil holds the zero value.
type sealed[T any] func() T

func seal[T any](value T) sealed[T] { return func() T { return value } }

func (s sealed[T]) open() (value T) {
	if s != nil {
		value = s()
	}
	return value
}
