package route

import (
	"cmp"
	"slices"
)

// Arguments are the arguments of a binding. Their order has no meaning.
type Arguments []Argument

// An Argument is one named argument. Value has the Go type of its AMQP field: bool, the sized integers, float32,
// float64, string, []byte, nil for void, []any, or a named type over one of these;
// a decimal is a struct of scale and value, a table a slice of structs of name and value.
type Argument struct {
	Name  string
	Value any
}

// sorted returns a copy in the order of names, so that equal arguments compare equal however they were sent.
func (a Arguments) sorted() Arguments {
	if len(a) == 0 {
		return nil
	}
	s := slices.Clone(a)
	slices.SortStableFunc(s, func(x, y Argument) int { return cmp.Compare(x.Name, y.Name) })
	return s
}

// lookup returns the first argument with that name.
func (a Arguments) lookup(name string) (any, bool) {
	for _, arg := range a {
		if arg.Name == name {
			return arg.Value, true
		}
	}
	return nil, false
}
