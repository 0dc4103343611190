package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/dormousemq/dormouse"
	"github.com/dormousemq/dormouse/internal/duration"
)

func newDeclare(env Environment) *cobra.Command {
	var client clientFlags
	var flags declareFlags
	cmd := &cobra.Command{
		Use:   "declare",
		Short: "Make the delay ladder, work queues, exchanges and fixed delays",
		Long: `Declare makes the delay ladder and what the flags name, and leaves alone what is there
already. It can be repeated. Where something is there with other settings, it stops and
says which.

A work queue gets a parking lot, the queue NAME.parked. A fixed delay is a single queue
whose messages all wait the same time and then go on.`,
		Example: `  dormouse declare
  dormouse declare --queue email --exchange orders:topic --bind "email=orders:order.*"
  dormouse declare --queue email --fixed-delay name=email.10s,delay=10s,to=email`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			topology, err := flags.topology()
			if err != nil {
				return err
			}
			return client.use(cmd.Context(), env, func(ctx context.Context, c *dormouse.Client) error {
				if err := c.Declare(ctx, topology); err != nil {
					return err
				}
				made := describe(topology, client.prefix)
				if client.json {
					return printJSON(env.Stdout, made)
				}
				var rows []table.Row
				for _, m := range made.InPlace {
					rows = append(rows, table.Row{m.Kind, m.Name, m.Detail})
				}
				newScreen(env, env.Stdout).table(table.Row{"in place", "name", ""}, rows)
				return nil
			})
		},
	}
	client.add(cmd)
	flags.add(cmd)
	return cmd
}

type declareFlags struct {
	queueType, ladderType string
	withoutLadder         bool
	queues, binds         []string
	exchanges             []string
	fixedDelays           []string
}

func (f *declareFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.queues, "queue", nil, "a work queue (repeatable)")
	flags.StringVar(&f.queueType, "queue-type", "quorum", "quorum or classic, for work queues and fixed delays")
	flags.StringArrayVar(&f.exchanges, "exchange", nil, "an exchange, NAME[:KIND]; kind topic unless given (repeatable)")
	flags.StringArrayVar(&f.binds, "bind", nil, "a binding, QUEUE=EXCHANGE:KEY (repeatable)")
	flags.StringArrayVar(&f.fixedDelays, "fixed-delay", nil,
		"a fixed delay, name=QUEUE,delay=DURATION and to=WORK-QUEUE\nor exchange=EXCHANGE[,key=KEY] (repeatable)")
	flags.StringVar(&f.ladderType, "ladder-type", "quorum", "quorum or classic, for the lanes of the ladder")
	flags.BoolVar(&f.withoutLadder, "without-ladder", false, "leave the ladder out")
}

// topology is what the flags name.
func (f *declareFlags) topology() (dormouse.Topology, error) {
	queueType, err := parseQueueType("--queue-type", f.queueType)
	if err != nil {
		return dormouse.Topology{}, err
	}
	ladderType, err := parseQueueType("--ladder-type", f.ladderType)
	if err != nil {
		return dormouse.Topology{}, err
	}
	t := dormouse.Topology{LadderType: ladderType, WithoutLadder: f.withoutLadder}
	for _, name := range f.queues {
		t.Queues = append(t.Queues, dormouse.Queue{Name: name, Type: queueType})
	}
	for _, s := range f.exchanges {
		name, kind, _ := strings.Cut(s, ":")
		t.Exchanges = append(t.Exchanges, dormouse.Exchange{Name: name, Kind: kind})
	}
	for _, s := range f.binds {
		queue, rest, ok := strings.Cut(s, "=")
		exchange, key, ok2 := strings.Cut(rest, ":")
		if !ok || !ok2 {
			return dormouse.Topology{}, usagef("--bind %q is not QUEUE=EXCHANGE:KEY", s)
		}
		i := slices.IndexFunc(t.Queues, func(q dormouse.Queue) bool { return q.Name == queue })
		if i < 0 {
			return dormouse.Topology{}, usagef("--bind %q: name the queue by --queue %s as well", s, queue)
		}
		t.Queues[i].Bindings = append(t.Queues[i].Bindings, dormouse.Binding{Exchange: exchange, RoutingKey: key})
	}
	for _, s := range f.fixedDelays {
		d, err := parseFixedDelay(s)
		if err != nil {
			return dormouse.Topology{}, usagef("--fixed-delay %q: %w", s, err)
		}
		d.Type = queueType
		t.FixedDelays = append(t.FixedDelays, d)
	}
	return t, nil
}

func parseQueueType(flag, s string) (dormouse.QueueType, error) {
	switch t := dormouse.QueueType(s); t {
	case dormouse.Quorum, dormouse.Classic:
		return t, nil
	}
	return "", usagef("%s %q is neither quorum nor classic", flag, s)
}

// parseFixedDelay reads name=Q,delay=10s,to=W or name=Q,delay=10s,exchange=E,key=K.
func parseFixedDelay(s string) (dormouse.FixedDelay, error) {
	var d dormouse.FixedDelay
	var to string
	for part := range strings.SplitSeq(s, ",") {
		key, value, _ := strings.Cut(part, "=")
		var err error
		switch key {
		case "name":
			d.Queue = value
		case "delay":
			d.Delay, err = duration.Parse(value)
		case "to":
			to = value
		case "exchange":
			d.Exchange = value
		case "key":
			d.RoutingKey = value
		default:
			err = fmt.Errorf("%q is not one of name, delay, to, exchange, key", key)
		}
		if err != nil {
			return d, err
		}
	}
	switch {
	case d.Queue == "" || d.Delay == 0:
		return d, fmt.Errorf("name and delay are needed")
	case (to == "") == (d.Exchange == ""):
		return d, fmt.Errorf("either to or exchange is needed")
	case to != "":
		d.RoutingKey = to
	}
	return d, nil
}

// declared is what `dormouse declare --json` prints.
type declared struct {
	InPlace []declaredThing `json:"in_place"`
}

type declaredThing struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Detail string `json:"detail,omitempty"`
}

func describe(t dormouse.Topology, prefix string) declared {
	var d declared
	add := func(kind, name, detail string) { d.InPlace = append(d.InPlace, declaredThing{kind, name, detail}) }
	if !t.WithoutLadder {
		add("ladder", prefix+".delay", string(t.LadderType)+" lanes")
	}
	for _, x := range t.Exchanges {
		kind := x.Kind
		if kind == "" {
			kind = "topic"
		}
		add("exchange", x.Name, kind)
	}
	for _, q := range t.Queues {
		add("queue", q.Name, string(q.Type))
		for _, b := range q.Bindings {
			add("binding", q.Name, fmt.Sprintf("from %s by %s", b.Exchange, b.RoutingKey))
		}
		add("parking lot", q.Name+".parked", "of "+q.Name)
	}
	for _, f := range t.FixedDelays {
		to := f.RoutingKey
		if f.Exchange != "" {
			to = strings.TrimSpace(f.Exchange + " " + f.RoutingKey)
		}
		add("fixed delay", f.Queue, fmt.Sprintf("%s, then to %s", f.Delay, to))
	}
	return d
}
