package route

import (
	"slices"

	"github.com/dormousemq/dormouse/internal/compact"
)

// mapAt is the number of children above which a node keeps them in a map.
const mapAt = 8

// edges are the children of a trie node by word.
type edges[D comparable] struct {
	few  []edge[D]
	many *compact.Map[string, *node[D]] // instead of few, once there were more than mapAt
}

type edge[D comparable] struct {
	word string
	node *node[D]
}

func (e *edges[D]) get(word string) *node[D] {
	if e.many != nil {
		n, _ := e.many.Get(word)
		return n
	}
	for i := range e.few {
		if e.few[i].word == word {
			return e.few[i].node
		}
	}
	return nil
}

// put adds a child whose word is not there yet.
func (e *edges[D]) put(word string, n *node[D]) {
	if e.many == nil && len(e.few) < mapAt {
		e.few = append(e.few, edge[D]{word, n})
		return
	}
	if e.many == nil {
		e.many = new(compact.Map[string, *node[D]])
		for _, f := range e.few {
			e.many.Set(f.word, f.node)
		}
		e.few = nil
	}
	e.many.Set(word, n)
}

func (e *edges[D]) delete(word string) {
	if e.many != nil {
		e.many.Delete(word)
		return
	}
	e.few = slices.DeleteFunc(e.few, func(f edge[D]) bool { return f.word == word })
}

func (e *edges[D]) empty() bool { return len(e.few) == 0 && (e.many == nil || e.many.Len() == 0) }
