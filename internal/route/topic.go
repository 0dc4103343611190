package route

import "strings"

// topic is a trie over the words of the binding keys. Words are separated by dots and may be empty; the empty key has
// no words at all. `*` stands for exactly one word, `#` for any number of them.
//
// A binding key may hold several `#`; matching costs up to words^n for n of them. RabbitMQ since 4.3.5 refuses more
// than two, see [CheckTopicBinding].
type topic[D comparable] struct {
	root node[D]
}

// NewTopic returns a Matcher by patterns of words.
func NewTopic[D comparable]() Matcher[D] { return new(topic[D]) }

type node[D comparable] struct {
	words edges[D]
	star  *node[D]
	hash  *node[D]
	here  destinations[D]
}

func (x *topic[D]) Bind(key string, args Arguments, d D) bool {
	n := &x.root
	for at := start(key); at <= len(key); {
		var word string
		word, at = next(key, at)
		n = n.grow(word)
	}
	return n.here.add(key, args, d)
}

func (x *topic[D]) Unbind(key string, args Arguments, d D) bool {
	return x.root.unbind(key, start(key), args, d)
}

func (x *topic[D]) Match(key string, _ func() Headers, yield func(D)) {
	x.root.match(key, start(key), yield)
}

// start is the position of the first word. A position beyond len(key) means that no word is left.
func start(key string) int {
	if key == "" {
		return 1
	}
	return 0
}

// next returns the word at a position and the position of the word after it.
func next(key string, at int) (string, int) {
	if i := strings.IndexByte(key[at:], '.'); i >= 0 {
		return key[at : at+i], at + i + 1
	}
	return key[at:], len(key) + 1
}

func (n *node[D]) match(key string, at int, yield func(D)) {
	if n.hash != nil {
		n.hash.matchRest(key, at, yield)
	}
	if at > len(key) {
		n.here.each(yield)
		return
	}
	word, after := next(key, at)
	if c := n.words.get(word); c != nil {
		c.match(key, after, yield)
	}
	if n.star != nil {
		n.star.match(key, after, yield)
	}
}

// matchRest matches at the node behind a `#`, which may have taken any number of the words from at on.
func (n *node[D]) matchRest(key string, at int, yield func(D)) {
	if n.leaf() {
		n.here.each(yield)
		return
	}
	for at <= len(key) {
		n.match(key, at, yield)
		_, at = next(key, at)
	}
	n.match(key, at, yield)
}

func (n *node[D]) leaf() bool { return n.star == nil && n.hash == nil && n.words.empty() }

// grow returns the child for a word of a binding key and makes it if it is missing.
func (n *node[D]) grow(word string) *node[D] {
	c := n.child(word)
	if c == nil {
		c = new(node[D])
		switch word {
		case "*":
			n.star = c
		case "#":
			n.hash = c
		default:
			n.words.put(strings.Clone(word), c)
		}
	}
	return c
}

func (n *node[D]) child(word string) *node[D] {
	switch word {
	case "*":
		return n.star
	case "#":
		return n.hash
	}
	return n.words.get(word)
}

// unbind removes the binding below n and the nodes that nothing needs any more.
func (n *node[D]) unbind(key string, at int, args Arguments, d D) bool {
	if at > len(key) {
		return n.here.remove(key, args, d)
	}
	word, after := next(key, at)
	c := n.child(word)
	if c == nil || !c.unbind(key, after, args, d) {
		return false
	}
	if c.leaf() && c.here.empty() {
		switch word {
		case "*":
			n.star = nil
		case "#":
			n.hash = nil
		default:
			n.words.delete(word)
		}
	}
	return true
}
