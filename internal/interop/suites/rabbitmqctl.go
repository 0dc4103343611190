package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// rabbitmqctl does what the Java tests ask of rabbitmqctl, through the management API, so that it works on every broker that
// has one: "-n NODE COMMAND ARGS". What the API has no way for fails. The exit code is returned.
func rabbitmqctl(ctx context.Context, management string, args []string, stdout, stderr io.Writer) int {
	if management == "" {
		fmt.Fprintln(stderr, "the broker under test has no management API")
		return 69
	}
	if len(args) > 2 && args[0] == "-n" {
		args = args[2:]
	}
	if err := (api{base: management}).do(ctx, args, stdout); err != nil {
		fmt.Fprintln(stderr, err)
		return 64
	}
	return 0
}

// api is a management API with the default user.
type api struct{ base string }

func (a api) do(ctx context.Context, args []string, stdout io.Writer) error {
	if len(args) == 0 {
		return errors.New("no command")
	}
	command, args := args[0], args[1:]
	vhost := "/"
	if len(args) > 1 && args[0] == "-p" {
		vhost, args = args[1], args[2:]
	}
	put, del := http.MethodPut, http.MethodDelete
	switch {
	case command == "add_user" && len(args) == 2:
		return a.call(ctx, put, object{"password": args[1], "tags": ""}, "users", args[0])
	case command == "delete_user" && len(args) == 1:
		return a.call(ctx, del, nil, "users", args[0])
	case command == "set_user_tags" && len(args) > 0:
		// The API sets tags together with the password, which is the default user's here.
		return a.call(ctx, put, object{"password": args[0], "tags": strings.Join(args[1:], ",")}, "users", args[0])
	case command == "add_vhost" && len(args) == 1:
		return a.call(ctx, put, object{}, "vhosts", args[0])
	case command == "delete_vhost" && len(args) == 1:
		return a.call(ctx, del, nil, "vhosts", args[0])
	case command == "set_permissions" && len(args) == 4:
		return a.call(ctx, put, object{"configure": args[1], "write": args[2], "read": args[3]}, "permissions", vhost, args[0])
	case command == "clear_permissions" && len(args) == 1:
		return a.call(ctx, del, nil, "permissions", vhost, args[0])
	case command == "set_topic_permissions" && len(args) == 4:
		return a.call(ctx, put, object{"exchange": args[1], "write": args[2], "read": args[3]}, "topic-permissions", vhost, args[0])
	case command == "clear_topic_permissions" && len(args) == 1:
		return a.call(ctx, del, nil, "topic-permissions", vhost, args[0])
	case command == "set_policy" && len(args) == 5 && args[0] == "--priority":
		return a.setPolicy(ctx, vhost, args[1:])
	case command == "clear_policy" && len(args) == 1:
		return a.call(ctx, del, nil, "policies", vhost, args[0])
	case command == "list_connections":
		return a.listConnections(ctx, stdout)
	case command == "close_connection" && len(args) == 2:
		return a.call(ctx, del, nil, "connections", args[0])
	}
	return fmt.Errorf("the management API cannot do: %s %s", command, strings.Join(args, " "))
}

type object map[string]any

// setPolicy is PRIORITY NAME PATTERN DEFINITION.
func (a api) setPolicy(ctx context.Context, vhost string, args []string) error {
	body := object{"priority": json.Number(args[0]), "pattern": args[2], "definition": json.RawMessage(args[3])}
	return a.call(ctx, http.MethodPut, body, "policies", vhost, args[1])
}

// listConnections prints "NAME<tab>PEER PORT"; a connection's name takes the place of its process.
func (a api) listConnections(ctx context.Context, stdout io.Writer) error {
	var connections []struct {
		Name     string `json:"name"`
		PeerPort int    `json:"peer_port"`
	}
	text, err := a.request(ctx, http.MethodGet, nil, "connections")
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &connections); err != nil {
		return err
	}
	for _, c := range connections {
		fmt.Fprintf(stdout, "%s\t%d\n", c.Name, c.PeerPort)
	}
	return nil
}

func (a api) call(ctx context.Context, method string, body object, path ...string) error {
	_, err := a.request(ctx, method, body, path...)
	return err
}

func (a api) request(ctx context.Context, method string, body object, path ...string) ([]byte, error) {
	var address strings.Builder
	address.WriteString(a.base + "/api")
	for _, part := range path {
		address.WriteString("/" + url.PathEscape(part))
	}
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, address.String(), content)
	if err != nil {
		return nil, err
	}
	req.SetBasicAuth("guest", "guest")
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		return nil, fmt.Errorf("%s %s: %s %s", method, &address, resp.Status, text)
	}
	return text, nil
}
