// Package delayed holds messages until they are due: the pending messages of an
// x-delayed-message exchange.
//
// Each message is a record of the store whose sequence number begins with its due time,
// so the store has them in order, and only the next ones need be in memory. A message
// leaves in one unit of work: into the queues and out of here.
package delayed
