package route

import (
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
)

// consistentHash is a line of buckets: the first binding's, as many as its weight, then the second's, and so on. A value
// goes to the bucket that jump consistent hashing gives it, so a new binding takes its share of the values evenly from all
// others and moves no value between those. Source of the algorithm: Lamping and Veach, "A Fast, Minimal Memory, Consistent
// Hash Algorithm", 2014. As in RabbitMQ, only the first binding of a destination counts.
type consistentHash[D comparable] struct {
	all    destinations[D]
	shares []share[D]
	total  int64
}

// share is how many buckets a destination has.
type share[D comparable] struct {
	dest   D
	weight int64
}

// NewConsistentHash returns a Matcher of the exchange type x-consistent-hash. The binding keys are weights, see
// [CheckHashBinding]. Call its Match once for a message, with the value to hash in place of the key.
func NewConsistentHash[D comparable]() Matcher[D] { return new(consistentHash[D]) }

func (x *consistentHash[D]) Bind(key string, args Arguments, d D) bool {
	bound := x.all.find(d) >= 0
	if !x.all.add(key, args, d) {
		return false
	}
	if !bound {
		w := weight(key)
		x.shares = append(x.shares, share[D]{d, w})
		x.total += w
	}
	return true
}

func (x *consistentHash[D]) Unbind(key string, args Arguments, d D) bool {
	if !x.all.remove(key, args, d) {
		return false
	}
	if x.all.find(d) < 0 {
		x.take(d)
	}
	return true
}

// Forget removes all bindings of d.
func (x *consistentHash[D]) Forget(d D) {
	if x.all.forget(d) {
		x.take(d)
	}
}

// take takes the share of d away.
func (x *consistentHash[D]) take(d D) {
	i := x.find(d)
	x.total -= x.shares[i].weight
	x.shares = slices.Delete(x.shares, i, i+1)
}

func (x *consistentHash[D]) find(d D) int {
	return slices.IndexFunc(x.shares, func(s share[D]) bool { return s.dest == d })
}

func (x *consistentHash[D]) Match(value string, _ func() Headers, yield func(D)) {
	if x.total == 0 {
		return
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(value))
	bucket := jump(h.Sum64(), x.total)
	for _, s := range x.shares {
		if bucket -= s.weight; bucket < 0 {
			yield(s.dest)
			return
		}
	}
}

// jump returns the bucket of a key, of n.
func jump(key uint64, n int64) int64 {
	b, j := int64(-1), int64(0)
	for j < n {
		b = j
		key = key*2862933555777941757 + 1
		j = int64(float64(b+1) * (float64(1<<31) / float64(key>>33+1)))
	}
	return b
}

// maxWeight keeps the sum of all weights within an int64 and the arithmetic exact.
const maxWeight = 1 << 31

func weight(key string) int64 {
	w, _ := strconv.ParseInt(key, 10, 64)
	return min(max(w, 1), maxWeight)
}

// CheckHashBinding returns an error with RabbitMQ's text (AMQP code 406) for a binding key that is no weight.
func CheckHashBinding(key string) error {
	w, err := strconv.ParseInt(key, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return nil
	case err != nil:
		return fmt.Errorf("The binding key must be an integer: %s", term(key))
	case w < 1:
		return errors.New("The binding key must be greater than 0")
	}
	return nil
}
