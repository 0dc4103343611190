// Package store keeps the broker's durable state: records by (queue, sequence number), one small mark beside a record,
// exact counters of each queue, and definitions by key. It does not know what a record means, and nothing above it
// knows Pebble, which keeps the bytes.
//
// # Group commit
//
// A unit of work ([Tx]) gathers its operations by itself and hands them over as a whole, so it is atomic and holds nothing
// while it is open. Operations of all units of work gather in one open group. The committer, a single goroutine, seals the
// open group, writes it as one Pebble batch, syncs, and tells the waiters in the order of their commits; meanwhile the next
// group gathers. A record that is removed while it still waits in the open group vanishes together with its removal: it is
// never written, and a group in which nothing is left to write needs no sync. A group that somebody waits for is sealed as
// soon as the committer is free, a group that nobody waits for gathers for lazyDelay, and one with nothing but
// delivered marks for softDelay.
//
// # What is on disk
//
// The folder holds LOCK (held by the process that has the folder open), FORMAT (the version of what follows, in plain text;
// see formatVersion), and the files of Pebble. All numbers in keys are big-endian, so that keys sort by them.
//
//	g                        the number of the last group written (8 bytes), in each batch
//	d <key>                  a definition
//	c <queue:8>              counters of a queue: uvarints, see tally
//	r <queue:8> <seq:8> 0    mark of a durable record
//	r <queue:8> <seq:8> 1    a durable record
//	t <queue:8> <seq:8> 0/1  the same for transient records; all dropped by Open
//
// Counters stand in the same batch as the records they count. So opening takes time by the number of queues, not of records.
//
// A record's key is set once and deleted once, so it is deleted by Pebble's SingleDelete: both meet and vanish when a
// memtable is flushed, mostly before they reach a table. That needs care: SingleDelete takes back one Set only. No sequence
// number of a queue is used twice, a group that failed is written again only when the group number on disk proves that it was
// not written, and range deletions (Purge, DropQueue) may stand anywhere, since they hide all that is older. Marks, counters and
// definitions are overwritten, and so deleted by Delete. From time to time all that lies before a queue's first record is deleted by
// range as well, so that readers need not pass it and its space is free sooner.
//
// # When the disk fails
//
// The first failed write ends the Pebble instance as a crash of the process would: from then on nothing that it does reaches
// the disk (see guardFS), all of it is thrown away, and a fresh instance recovers from what is on disk. The process lives on.
// Waiters are told [ErrUnavailable] at once; the operations stay in memory, bounded by [Store.Begin], and are written when the disk
// takes writes again. What had been confirmed was synced, so it is not lost.
package store
