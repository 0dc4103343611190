package store

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"pgregory.net/rapid"
)

// TestModel compares the store with a model under random units of work, crashes that lose unsynced writes, disks that fail for
// a while, and reopening. It must hold that
//
//   - what a waiter was told to be committed is there,
//   - what is there is what the first so many units of work made, each as a whole,
//   - nothing durable is lost by a disk that fails while the process lives,
//   - the counters are what a scan counts.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{files: vfs.NewCrashableMem(), nextSeq: map[QueueID]uint64{}, ids: [3]QueueID{1, 2, 3}, lastID: 3}
		m.open(t, state{})
		defer m.closeAbruptly()
		t.Repeat(map[string]func(*rapid.T){
			"work":   m.work,
			"more":   m.work,
			"begin":  m.begin,
			"end":    m.end,
			"check":  m.check,
			"crash":  m.crash,
			"reopen": m.reopen,
			"break":  m.breakDisk,
			"heal":   m.heal,
		})
		m.heal(t)
		m.check(t)
	})
}

// state is what the store should have.
type state struct {
	queues      map[QueueID]queueModel
	definitions map[string]string
}

type queueModel struct {
	records   map[uint64]recordModel
	delivered uint64
}

type recordModel struct {
	content, mark string
	transient     bool
}

func (s state) clone() state {
	c := state{queues: map[QueueID]queueModel{}, definitions: map[string]string{}}
	maps.Copy(c.definitions, s.definitions)
	for q, m := range s.queues {
		m.records = maps.Clone(m.records)
		c.queues[q] = m
	}
	return c
}

// without returns s without the transient records that drop says.
func (s state) without(drop func(q QueueID, seq uint64) bool) state {
	c := s.clone()
	for q, m := range c.queues {
		maps.DeleteFunc(m.records, func(seq uint64, r recordModel) bool { return r.transient && drop(q, seq) })
	}
	return c
}

func (s state) durable() state { return s.without(func(QueueID, uint64) bool { return true }) }

func (s state) update(q QueueID, change func(*queueModel)) {
	m := s.queues[q]
	if m.records == nil {
		m.records = map[uint64]recordModel{}
	}
	change(&m)
	s.queues[q] = m
}

func (s state) String() string {
	var b strings.Builder
	for _, q := range slices.Sorted(maps.Keys(s.queues)) {
		m := s.queues[q]
		if len(m.records) == 0 && m.delivered == 0 {
			continue
		}
		fmt.Fprintf(&b, "queue %d, delivered %d:", q, m.delivered)
		for _, seq := range slices.Sorted(maps.Keys(m.records)) {
			fmt.Fprintf(&b, " %.12s(%d)/%s", m.records[seq].content, len(m.records[seq].content), m.records[seq].mark)
		}
		b.WriteString("\n")
	}
	for _, k := range slices.Sorted(maps.Keys(s.definitions)) {
		fmt.Fprintf(&b, "%s=%s\n", k, s.definitions[k])
	}
	return b.String()
}

// machine runs a store and its model, in one goroutine but for the store's own.
type machine struct {
	files *vfs.MemFS
	fault *fault
	store *Store

	states    []state       // what the units of work made, from number base on
	base      uint64        // number of the unit of work that made states[0]
	confirmed atomic.Uint64 // the last unit of work that a waiter was told of
	faulted   bool          // the disk has failed, and the store may be about to notice

	works   []*work    // begun, not ended
	ids     [3]QueueID // in use
	lastID  QueueID
	nextSeq map[QueueID]uint64
	puts    map[QueueID]map[uint64]*Put // of this store
	claimed map[QueueID]map[uint64]bool // what some unit of work removes
}

// work is an open unit of work and what it does to the model.
type work struct {
	tx        *Tx
	effects   []func(state)
	staysOpen bool
}

func (m *machine) Committed(number uint64, err error) {
	if err == nil {
		m.confirmed.Store(number)
	}
}

// open opens a store, which should have s.
func (m *machine) open(t *rapid.T, s state) {
	m.fault = &fault{}
	m.store = mustOpen(t, errorfs.Wrap(m.files, m.fault))
	m.puts, m.claimed, m.works = map[QueueID]map[uint64]*Put{}, map[QueueID]map[uint64]bool{}, nil
	m.faulted = false
	m.settle(s)
}

// settle forgets all that was before s.
func (m *machine) settle(s state) {
	m.base += uint64(len(m.states)) + 1
	m.states = []state{s}
	m.confirmed.Store(m.base)
}

func (m *machine) closeAbruptly() {
	m.fault.heal()
	_ = m.store.Close()
}

func (m *machine) last() state { return m.states[len(m.states)-1] }

func (m *machine) begin(t *rapid.T) {
	if len(m.works) < 3 {
		m.works = append(m.works, m.newWork(t, true))
	}
}

func (m *machine) newWork(t *rapid.T, staysOpen bool) *work {
	w := &work{tx: m.store.Begin(), staysOpen: staysOpen}
	for range rapid.IntRange(0, 6).Draw(t, "operations") {
		m.operation(t, w)
	}
	return w
}

func (m *machine) work(t *rapid.T) { m.finish(t, m.newWork(t, false)) }

func (m *machine) end(t *rapid.T) {
	if len(m.works) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.works)-1).Draw(t, "which")
	w := m.works[i]
	m.works = slices.Delete(m.works, i, i+1)
	for range rapid.IntRange(0, 2).Draw(t, "operations") {
		m.operation(t, w)
	}
	m.finish(t, w)
}

func (m *machine) finish(t *rapid.T, w *work) {
	next := m.last().clone()
	for _, effect := range w.effects {
		effect(next)
	}
	m.states = append(m.states, next)
	number := m.base + uint64(len(m.states)-1)
	switch rapid.SampledFrom([]string{"end", "commit", "commit", "wait"}).Draw(t, "how") {
	case "end":
		w.tx.End()
	case "commit":
		w.tx.Commit(m, number)
	case "wait":
		w.tx.Commit(m, number)
		if !m.fault.on() {
			settle(t, m.store)
		}
	}
}

func (m *machine) operation(t *rapid.T, w *work) {
	q := rapid.SampledFrom(m.ids[:]).Draw(t, "queue")
	if m.puts[q] == nil {
		m.puts[q], m.claimed[q] = map[uint64]*Put{}, map[uint64]bool{}
	}
	operations := map[string]func(*rapid.T, *work, QueueID){
		"put": m.put, "remove": m.remove, "mark": m.mark, "delivered": m.delivered, "define": m.define, "purge": m.purge, "drop": m.drop,
	}
	name := rapid.SampledFrom([]string{"put", "put", "put", "remove", "remove", "mark", "delivered", "define", "purge", "drop"}).Draw(t, "operation")
	operations[name](t, w, q)
}

func (m *machine) put(t *rapid.T, w *work, q QueueID) {
	m.nextSeq[q] += rapid.Uint64Range(1, 3).Draw(t, "gap")
	seq := m.nextSeq[q]
	r := recordModel{
		content:   fmt.Sprint(seq, strings.Repeat("x", rapid.SampledFrom([]int{0, 1, 100, 5000}).Draw(t, "size"))),
		transient: rapid.IntRange(0, 3).Draw(t, "transient") == 0,
	}
	p := w.tx.Put(q, seq, blob(r.content), r.transient)
	m.puts[q][seq] = p
	w.effects = append(w.effects, func(s state) {
		if m.puts[q][seq] == p { // not removed before
			s.update(q, func(m *queueModel) { m.records[seq] = r })
		}
	})
}

func (m *machine) remove(t *rapid.T, w *work, q QueueID) {
	records := m.last().queues[q].records
	candidates := maps.Clone(records)
	if candidates == nil {
		candidates = map[uint64]recordModel{}
	}
	for seq := range m.puts[q] { // those of units of work that are open
		candidates[seq] = recordModel{}
	}
	maps.DeleteFunc(candidates, func(seq uint64, _ recordModel) bool { return m.claimed[q][seq] })
	if len(candidates) == 0 {
		return
	}
	seq := rapid.SampledFrom(slices.Sorted(maps.Keys(candidates))).Draw(t, "seq")
	m.claimed[q][seq] = true
	p := m.puts[q][seq]
	how := rapid.SampledFrom([]string{"put", "size", "nothing"}).Draw(t, "known by")
	switch {
	case p != nil && (how == "put" || !p.Committed()):
		w.tx.Remove(q, seq, p)
	case how == "size":
		w.tx.RemoveScanned(q, seq, len(records[seq].content))
	default:
		w.tx.Remove(q, seq, nil)
	}
	w.effects = append(w.effects, func(s state) {
		delete(m.puts[q], seq)
		s.update(q, func(m *queueModel) { delete(m.records, seq) })
	})
}

func (m *machine) mark(t *rapid.T, w *work, q QueueID) {
	records := m.last().queues[q].records
	if len(records) == 0 {
		return
	}
	seq := rapid.SampledFrom(slices.Sorted(maps.Keys(records))).Draw(t, "seq")
	mark := fmt.Sprint("m", rapid.IntRange(0, 99).Draw(t, "mark"))
	w.tx.Mark(q, seq, []byte(mark))
	w.effects = append(w.effects, func(s state) {
		s.update(q, func(m *queueModel) {
			if r, ok := m.records[seq]; ok {
				r.mark = mark
				m.records[seq] = r
			}
		})
	})
}

func (m *machine) delivered(t *rapid.T, w *work, q QueueID) {
	upTo := rapid.Uint64Range(0, m.nextSeq[q]+2).Draw(t, "up to")
	m.nextSeq[q] = max(m.nextSeq[q], upTo)
	w.tx.Delivered(q, upTo)
	w.effects = append(w.effects, func(s state) {
		s.update(q, func(m *queueModel) { m.delivered = max(m.delivered, upTo) })
	})
}

func (m *machine) define(t *rapid.T, w *work, _ QueueID) {
	key := fmt.Sprint("k", rapid.IntRange(0, 4).Draw(t, "key"))
	if rapid.Bool().Draw(t, "delete") {
		w.tx.DeleteDefinition(key)
		w.effects = append(w.effects, func(s state) { delete(s.definitions, key) })
		return
	}
	value := fmt.Sprint(rapid.IntRange(0, 99).Draw(t, "value"))
	w.tx.SetDefinition(key, []byte(value))
	w.effects = append(w.effects, func(s state) { s.definitions[key] = value })
}

func (m *machine) purge(t *rapid.T, w *work, q QueueID) {
	from := rapid.Uint64Range(0, m.nextSeq[q]+1).Draw(t, "from")
	to := rapid.Uint64Range(from, m.nextSeq[q]+2).Draw(t, "to")
	if w.staysOpen || len(m.works) > 0 {
		return // what is dropped must not be removed as well
	}
	w.tx.Purge(q, from, to)
	m.drops(w, q, from, to)
}

func (m *machine) drop(t *rapid.T, w *work, q QueueID) {
	if w.staysOpen || len(m.works) > 0 || rapid.IntRange(0, 3).Draw(t, "really") > 0 {
		return
	}
	w.tx.DropQueue(q)
	m.drops(w, q, 0, maxSeq)
	w.effects = append(w.effects, func(s state) { delete(s.queues, q) })
	m.lastID++
	m.ids[slices.Index(m.ids[:], q)] = m.lastID
}

func (m *machine) drops(w *work, q QueueID, from, to uint64) {
	var seqs []uint64
	seqs = slices.AppendSeq(seqs, maps.Keys(m.puts[q]))
	seqs = slices.AppendSeq(seqs, maps.Keys(m.last().queues[q].records))
	for _, seq := range seqs {
		if from <= seq && seq < to {
			m.claimed[q][seq] = true
			w.effects = append(w.effects, func(s state) {
				delete(m.puts[q], seq)
				s.update(q, func(m *queueModel) { delete(m.records, seq) })
			})
		}
	}
}

func (m *machine) breakDisk(t *rapid.T) {
	kind := rapid.SampledFrom(slices.Sorted(maps.Keys(faultKinds))).Draw(t, "kind")
	err := rapid.SampledFrom([]error{syscall.EIO, syscall.ENOSPC, syscall.EROFS}).Draw(t, "error")
	m.fault.set(err, rapid.IntRange(0, 10).Draw(t, "after"), rapid.IntRange(0, 2).Draw(t, "times"), faultKinds[kind])
	m.faulted = true
}

func (m *machine) heal(*rapid.T) { m.fault.heal() }

// read returns what is in the store.
func (m *machine) read(t *rapid.T) state {
	got := state{queues: map[QueueID]queueModel{}, definitions: map[string]string{}}
	for q, c := range m.store.Queues() {
		got.update(q, func(m *queueModel) { m.delivered = c.Delivered })
	}
	for q := range m.lastID + 1 {
		for _, r := range scan(t, m.store, q, 0, 0) {
			got.update(q, func(m *queueModel) { m.records[r.seq] = recordModel{content: r.record, mark: r.mark} })
		}
	}
	definitions, err := m.store.Definitions("")
	if err != nil {
		t.Fatalf("definitions: %v", err)
	}
	for k, v := range definitions {
		got.definitions[k] = string(v)
	}
	return got
}

// check compares the store with the model, when all is written.
func (m *machine) check(t *rapid.T) {
	if m.fault.on() {
		return
	}
	settle(t, m.store)
	verify(t, m.store)
	got, want := m.read(t), m.last()
	if m.faulted {
		want = want.without(func(q QueueID, seq uint64) bool {
			_, ok := got.queues[q].records[seq]
			if !ok {
				delete(m.puts[q], seq)
			}
			return !ok
		})
	}
	if got.String() != want.String() {
		t.Fatalf("the store has\n%s\nshould have\n%s", got, want)
	}
	m.settle(want)
}

func (m *machine) reopen(t *rapid.T) {
	if m.fault.on() {
		return
	}
	m.check(t)
	if err := m.store.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	m.open(t, m.last().durable())
	m.check(t)
}

// crash replaces the store by one that finds what a crash of the machine leaves.
func (m *machine) crash(t *rapid.T) {
	survives := rapid.SampledFrom([]int{0, 30, 70, 100}).Draw(t, "per cent of unsynced writes that survive")
	seed := rapid.Uint64().Draw(t, "seed")
	confirmed := m.confirmed.Load()
	files := m.files.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: survives, RNG: rand.New(rand.NewPCG(seed, 1))})
	m.closeAbruptly()
	m.files = files
	candidates := m.states[confirmed-m.base:]
	m.open(t, state{})
	verify(t, m.store)
	got := m.read(t)
	var all strings.Builder
	for i, candidate := range candidates {
		want := candidate.durable()
		if got.String() == want.String() {
			m.settle(want)
			return
		}
		fmt.Fprintf(&all, "after %d more:\n%s\n", i, want)
	}
	t.Fatalf("after the crash the store has\n%s\nshould have one of these\n%s", got, &all)
}
