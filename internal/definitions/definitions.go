// Package definitions reads and writes RabbitMQ's definitions: the JSON that `rabbitmqctl export_definitions` and the management
// API write, of users, virtual hosts, permissions, policies, exchanges, queues and bindings. Reading them again changes
// nothing: what is there stays as it is, as in RabbitMQ. Source: https://www.rabbitmq.com/docs/definitions.
package definitions

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/dormousemq/dormouse/internal/access"
	"github.com/dormousemq/dormouse/internal/vhost"
)

// Broker is what definitions are about.
type Broker struct {
	Directory *access.Directory
	Hosts     *vhost.Hosts
	Globals   Globals      // nil: they are left out
	Logger    *slog.Logger // is told what is left out
}

// Globals are the global parameters.
type Globals interface {
	All() ([]GlobalParameter, error)
	Put(ctx context.Context, p GlobalParameter) error
}

// GlobalParameter is something that a broker keeps for others.
type GlobalParameter struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

// ErrJSON says that definitions are no JSON of definitions at all.
var ErrJSON = errors.New("these are no definitions in JSON")

// file is the JSON of definitions.
type file struct {
	Format           string            `json:"rabbitmq_definition_format"`
	Users            []user            `json:"users"`
	VHosts           []host            `json:"vhosts"`
	Permissions      []permission      `json:"permissions"`
	TopicPermissions []topicPermission `json:"topic_permissions"`
	GlobalParameters []GlobalParameter `json:"global_parameters"`
	Parameters       []parameter       `json:"parameters"`
	Policies         []policyOf        `json:"policies"`
	Exchanges        []exchange        `json:"exchanges"`
	Queues           []queue           `json:"queues"`
	Bindings         []binding         `json:"bindings"`

	Limits pairs `json:"limits"` // of the one virtual host that the definitions are of
}

// singleHost is the format of the definitions of one virtual host, which do not say of which.
const singleHost = "single_virtual_host"

// Import makes what text defines, of all virtual hosts. The error says where in the text is what cannot be made; what
// comes before it has been made.
func Import(ctx context.Context, b Broker, text []byte) error {
	f, err := parse(text)
	if err != nil {
		return err
	}
	if f.Format == singleHost {
		return errors.New("these are the definitions of one virtual host, which do not say of which: export those of the whole broker")
	}
	return importer{b, nil}.all(ctx, f)
}

// ImportInto makes what text, the definitions of one virtual host, defines, in the host of that name.
func ImportInto(ctx context.Context, b Broker, name string, text []byte) error {
	f, err := parse(text)
	if err != nil {
		return err
	}
	f.Users, f.VHosts, f.Permissions, f.TopicPermissions, f.GlobalParameters = nil, nil, nil, nil, nil
	if len(f.Limits) > 0 {
		if err := (importer{b, &name}).limits(ctx, name, f.Limits); err != nil {
			return err
		}
	}
	return importer{b, &name}.all(ctx, f)
}

func parse(text []byte) (*file, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	f := &file{}
	err := decoder.Decode(f)
	switch {
	case err == nil:
		return f, nil
	case len(bytes.TrimSpace(text)) == 0:
		return nil, fmt.Errorf("%w: the definitions are empty", ErrJSON)
	}
	at := decoder.InputOffset()
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = e.Offset
	} else if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil, fmt.Errorf("%w: line %d: %s is %s, which it must not be", ErrJSON, line(text, e.Offset), e.Field, e.Value)
	}
	return nil, fmt.Errorf("%w: line %d: %w", ErrJSON, line(text, at), err)
}

// line is the number of the line at an offset, from 1 on.
func line(text []byte, at int64) int {
	return 1 + bytes.Count(text[:min(int(at), len(text))], []byte("\n"))
}
