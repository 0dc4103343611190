// Package check reads a data folder that no broker has open, without touching it, and
// tells what is in it and whether it is sound: checksums, counters against messages,
// definitions that can be read, messages that belong to somebody and can be decoded.
package check

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/store"
	"github.com/dormousemq/dormouse/internal/wire"
)

// Report is what is in a data folder.
type Report struct {
	Sound    bool     `json:"sound"`
	Problems []string `json:"problems,omitempty"`
	// SetAside are damaged files that the broker has set aside, in the folder "damaged".
	SetAside    []string       `json:"set_aside,omitempty"`
	Files       int            `json:"files"`
	Bytes       int            `json:"bytes"` // of the files
	Messages    uint64         `json:"messages"`
	Definitions map[string]int `json:"definitions"` // how many, by kind
	Queues      []Queue        `json:"queues"`
}

// Queue is a queue, or an exchange with messages that are delayed.
type Queue struct {
	VHost    string `json:"vhost"`
	Name     string `json:"name"`
	Type     string `json:"type"` // of the queue, or "x-delayed-message"
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"` // of the messages with what is stored beside them
}

const delayed = "x-delayed-message"

// Folder checks the data folder dir. Errors are about the folder as a whole: there is
// none, it is in use, or a newer version wrote it.
func Folder(dir string, progress func(done, all int)) (*Report, error) {
	asEntry, asMessage := unreadable{}, unreadable{} // whose a record is turns out later
	found, err := store.Check(dir, store.CheckOptions{Progress: progress, Record: func(q store.QueueID, seq uint64, b []byte) error {
		asEntry.note(q, seq, queue.CheckRecord(b))
		_, err := message.Decode(b)
		asMessage.note(q, seq, err)
		return nil
	}})
	if err != nil {
		return nil, err
	}
	return summarize(found, asEntry, asMessage), nil
}

// unreadable are records that cannot be decoded.
type unreadable map[store.QueueID][]record

type record struct {
	number uint64
	err    error
}

const mostRecords = 10 // that are told of one queue

func (u unreadable) note(q store.QueueID, number uint64, err error) {
	if err != nil && len(u[q]) < mostRecords {
		u[q] = append(u[q], record{number, err})
	}
}

func summarize(found *store.Checked, asEntry, asMessage unreadable) *Report {
	r := &Report{
		Problems: found.Problems, SetAside: found.SetAside, Files: found.Files, Bytes: found.Bytes,
		Definitions: map[string]int{}, Queues: []Queue{},
	}
	owners := map[store.QueueID]*Queue{}
	for _, key := range slices.Sorted(maps.Keys(found.Definitions)) {
		parts := strings.Split(key, "\x00")
		r.Definitions[parts[0]]++
		q, ids, err := owner(parts, found.Definitions[key])
		if err != nil {
			r.Problems = append(r.Problems, fmt.Sprintf("the definition %q: %v", strings.ReplaceAll(key, "\x00", " "), err))
			continue
		}
		for _, id := range ids {
			if other := owners[id]; other != nil {
				r.Problems = append(r.Problems, fmt.Sprintf("%q and %q have the same number", other.Name, q.Name))
			}
			owners[id] = q
		}
	}
	for _, id := range slices.Sorted(maps.Keys(found.Queues)) {
		f, q := found.Queues[id], owners[id]
		r.Messages += f.Counted
		if q == nil {
			if f.Counted > 0 {
				r.Problems = append(r.Problems, fmt.Sprintf("%d messages belong to no queue (number %d)", f.Counted, id))
			}
			continue
		}
		q.Messages += f.Counted
		q.Bytes += f.Length
		var bad []record
		switch q.Type {
		case delayed:
			bad = asMessage[id]
		case string(queue.Classic), string(queue.Quorum): // those of a stream are of other kinds
			bad = asEntry[id]
		}
		for _, u := range bad {
			r.Problems = append(r.Problems, fmt.Sprintf("message %d of %q cannot be decoded: %v", u.number, q.Name, u.err))
		}
	}
	listed := map[*Queue]bool{}
	for _, q := range owners {
		if !listed[q] {
			listed[q] = true
			r.Queues = append(r.Queues, *q)
		}
	}
	slices.SortFunc(r.Queues, func(a, b Queue) int {
		return cmp.Or(cmp.Compare(a.VHost, b.VHost), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Type, b.Type))
	})
	r.Sound = len(r.Problems) == 0
	return r
}

// owner reads a definition. If it is of something that has messages, it returns that with
// its numbers in the store.
func owner(key []string, value []byte) (*Queue, []store.QueueID, error) {
	switch key[0] {
	case "pending":
		q := &Queue{Type: delayed}
		if len(key) > 2 {
			q.VHost, q.Name = unescaped(key[1]), unescaped(key[2])
		}
		var ids []store.QueueID
		for b := value; len(b) >= 8; b = b[8:] {
			ids = append(ids, store.QueueID(binary.BigEndian.Uint64(b)))
		}
		if len(value)%8 != 0 {
			return q, ids, fmt.Errorf("%d bytes are no list of numbers", len(value))
		}
		return q, ids, nil
	case "exchange", "queue", "binding":
	default:
		return nil, nil, nil
	}
	t, err := wire.ParseTable(value)
	if err != nil || key[0] != "queue" {
		return nil, nil, err
	}
	q := &Queue{Name: text(t, "name"), VHost: unescaped(key[1])}
	v, _ := t.Get("id")
	id, ok := v.(int64)
	if !ok {
		return nil, nil, fmt.Errorf("it has no number")
	}
	arguments, _ := t.Get("arguments")
	a, _ := arguments.(wire.Table)
	q.Type = cmp.Or(text(a, "x-queue-type"), string(queue.Classic))
	settings := queue.Defaults(queue.Type(q.Type), true)
	if v, has := a.Get("x-max-priority"); has && q.Type == string(queue.Classic) {
		var n int
		_, _ = fmt.Sscan(fmt.Sprint(v), &n)
		settings.MaxPriority = uint8(n)
	}
	ids := make([]store.QueueID, settings.Levels())
	for i := range ids {
		ids[i] = store.QueueID(id) + store.QueueID(i)
	}
	return q, ids, nil
}

func text(t wire.Table, name string) string {
	v, _ := t.Get(name)
	s, _ := v.(string)
	return s
}

func unescaped(name string) string {
	return strings.NewReplacer("\x01\x01", "\x00", "\x01\x02", "\x01").Replace(name)
}
