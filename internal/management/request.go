package management

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/dormousemq/dormouse/internal/access"
	"github.com/dormousemq/dormouse/internal/vhost"
)

// request is a request whose user is known.
type request struct {
	http      *http.Request
	user      *access.Identity
	variables map[string]string
	host      *vhost.Host // that of the path, if it has one
}

// param is a parameter of the query, "" if it is missing.
func (r *request) param(name string) string { return r.http.URL.Query().Get(name) }

// is tells whether a parameter of the query is "true".
func (r *request) is(name string) bool { return r.param(name) == "true" }

// fields are the members of a JSON object that is the body of a request. Numbers are
// json.Number.
type fields map[string]any

// body reads the body, which may be empty.
func (r *request) body() (fields, error) {
	text, err := r.text()
	if err != nil {
		return nil, err
	}
	return parse(text)
}

func (r *request) text() ([]byte, error) {
	text, err := io.ReadAll(r.http.Body)
	return text, bodyFailure(err)
}

// bodyFailure says why a body could not be read, nil if it could.
func bodyFailure(err error) error {
	if err == nil {
		return nil
	}
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return badRequest("Exceeded HTTP request body size limit")
	}
	return badRequest("the request body could not be read")
}

func parse(text []byte) (fields, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return fields{}, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil || decoder.More() {
		return nil, badRequest("not_json")
	}
	switch v := v.(type) {
	case map[string]any:
		return v, nil
	case string:
		return nil, badRequest("invalid payload: the request body JSON-decoded to a string. Is the input doubly-JSON-encoded?")
	}
	return nil, badRequest("not_json")
}

// needs refuses a body that lacks one of the members.
func (f fields) needs(names ...string) error {
	for _, name := range names {
		if _, has := f[name]; !has {
			return missingKey(name)
		}
	}
	return nil
}

// text is a member that is a string; "" if it is missing.
func (f fields) text(name string) (string, error) {
	v, has := f[name]
	s, ok := v.(string)
	if has && v != nil && !ok {
		return "", badRequest([]any{"not_a_string", name})
	}
	return s, nil
}

// flag is a member that is a truth value; false if it is missing.
func (f fields) flag(name string) (bool, error) {
	v, has := f[name]
	if !has {
		return false, nil
	}
	switch b := v.(type) {
	case bool:
		return b, nil
	case string:
		if b == "true" || b == "false" {
			return b == "true", nil
		}
	}
	return false, badRequest([]any{"not_boolean", v})
}

// integer is a member that is a whole number, which may be written as a string.
func (f fields) integer(name string) (int, error) {
	v := f[name]
	var text string
	switch v := v.(type) {
	case json.Number:
		text = v.String()
	case string:
		text = v
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, badRequest([]any{"not_integer", v})
	}
	return n, nil
}

// object is a member that is an object; empty if it is missing.
func (f fields) object(name string) (map[string]any, error) {
	v, has := f[name]
	o, ok := v.(map[string]any)
	if list, isList := v.([]any); isList && len(list) == 0 {
		return nil, nil // what PHP makes of an empty object
	}
	if has && !ok {
		return nil, badRequest([]any{"not_an_object", name})
	}
	return o, nil
}

// tags are a member that is a list of strings, or one string with commas between them.
func (f fields) tags(name string) ([]string, error) {
	tags := []string{}
	switch v := f[name].(type) {
	case nil:
	case string:
		for tag := range strings.SplitSeq(v, ",") {
			if tag = strings.TrimSpace(tag); tag != "" {
				tags = append(tags, tag)
			}
		}
	case []any:
		for _, e := range v {
			tag, ok := e.(string)
			if !ok {
				return nil, badRequest([]any{"not_a_string", e})
			}
			tags = append(tags, tag)
		}
	default:
		return nil, badRequest([]any{"not_a_list", v})
	}
	return tags, nil
}
