package dormouse

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/internal/ladder"
)

const (
	// routeLife is how long something found on the broker is believed to be there still.
	routeLife = time.Minute
	// mostRoutes bounds the memory of routes.
	mostRoutes = 4096
)

// routes makes sure that messages have somewhere to go, and remembers what it found. It works on a channel of its own, because
// the broker closes the channel on which something is missing.
type routes struct {
	conn   *connection
	ladder *ladder.Ladder
	log    *slog.Logger
	asking turn
	ch     *amqp.Channel // used by asking only

	mu    sync.Mutex
	known map[string]time.Time // when it was last found
}

func newRoutes(conn *connection, l *ladder.Ladder, log *slog.Logger) *routes {
	return &routes{conn: conn, ladder: l, log: log, asking: newTurn(), known: map[string]time.Time{}}
}

// ensure runs do unless it succeeded within the last minute.
func (r *routes) ensure(ctx context.Context, what string, do func(*amqp.Channel) error) error {
	if r.knows(what, time.Now()) {
		return nil
	}
	return r.asking.do(ctx, func() error {
		now := time.Now()
		if r.knows(what, now) {
			return nil
		}
		if r.ch == nil || r.ch.IsClosed() {
			ch, err := r.conn.Channel()
			if err != nil {
				return r.closedOr(err)
			}
			r.ch = ch
		}
		err := do(r.ch)
		if isCode(err, amqp.AccessRefused) {
			// This user may publish but not configure: somebody else has declared things, one hopes.
			r.log.Debug("not allowed to check or bind", "what", what, "error", err)
			err = nil
		}
		if err != nil {
			return r.closedOr(err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.known) >= mostRoutes {
			clear(r.known)
		}
		r.known[what] = now
		return nil
	})
}

func (r *routes) knows(what string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.known[what]
	return ok && now.Sub(at) < routeLife
}

// closedOr is amqp.ErrClosed for an error that came of losing the connection, and err otherwise.
func (r *routes) closedOr(err error) error {
	if r.conn.IsClosed() {
		return amqp.ErrClosed
	}
	return err
}

// checkExchange makes sure that an exchange is there. Publishing to a missing one would close the channel and leave every other
// message on its way in doubt.
func (r *routes) checkExchange(ctx context.Context, name string) error {
	if name == "" || strings.HasPrefix(name, "amq.") {
		return nil
	}
	return r.ensure(ctx, "exchange "+name, func(ch *amqp.Channel) error {
		return ch.ExchangeDeclarePassive(name, amqp.ExchangeDirect, true, false, false, false, nil)
	})
}

// bindDestination makes sure that the destination of a delayed message is bound at the end of the ladder.
func (r *routes) bindDestination(ctx context.Context, msg *post) error {
	return r.ensure(ctx, "destination "+msg.destination(), func(ch *amqp.Channel) error {
		return bindDestination(ch, r.ladder, msg)
	})
}

func bindDestination(ch *amqp.Channel, l *ladder.Ladder, msg *post) (err error) {
	key, due := ladder.DestinationPattern(msg.destination()), l.Due()
	if msg.exchange != "" {
		err = ch.ExchangeBind(msg.exchange, key, due, false, nil)
	} else {
		err = ch.QueueBind(msg.queueName(), key, due, false, nil)
	}
	if isCode(err, amqp.NotFound) && strings.Contains(err.Error(), "'"+due+"'") {
		err = fmt.Errorf("the delay ladder %q is not declared on this broker: %w", l.Prefix(), err)
	}
	return err
}

// isCode reports whether err is the broker's exception with this reply code.
func isCode(err error, code int) bool {
	e, ok := errors.AsType[*amqp.Error](err)
	return ok && e.Code == code && e.Server
}
