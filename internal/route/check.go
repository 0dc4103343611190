package route

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// maxHashes is the number of `#` that RabbitMQ allows in one topic binding key since 4.3.5.
const maxHashes = 2

// CheckTopicBinding returns an error with RabbitMQ's text (AMQP code 406) for a binding key with more than two `#`.
func CheckTopicBinding(key string) error {
	hashes := 0
	for word := range strings.SplitSeq(key, ".") {
		if word == "#" {
			hashes++
		}
	}
	if hashes > maxHashes {
		return fmt.Errorf("Topic binding key '%s' uses %d '#' wildcards, at most %d are allowed", key, hashes, maxHashes)
	}
	return nil
}

// CheckHeadersBinding returns an error with RabbitMQ's text (AMQP code 406) for an x-match that is none of the four
// kinds. An absent x-match is allowed and means all.
func CheckHeadersBinding(args Arguments) error {
	v, ok := args.lookup("x-match")
	if !ok {
		return nil
	}
	mode, ok := v.(string)
	if !ok {
		return fmt.Errorf("Invalid x-match field type %s (value %s); expected longstr", fieldType(v), term(v))
	}
	switch mode {
	case "all", "any", "all-with-x", "any-with-x":
		return nil
	}
	return fmt.Errorf("Invalid x-match field value %s; expected all, any, all-with-x, or any-with-x", term(mode))
}

// term writes a value as RabbitMQ prints it.
func term(v any) string {
	switch v := v.(type) {
	case nil:
		return "undefined"
	case string:
		if v == "" {
			return "<<>>"
		}
		return "<<" + strconv.Quote(v) + ">>"
	case []byte:
		return term(string(v))
	case []any:
		elements := make([]string, len(v))
		for i, e := range v {
			elements[i] = "{" + fieldType(e) + "," + term(e) + "}"
		}
		return "[" + strings.Join(elements, ",") + "]"
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Float32, reflect.Float64:
		s := strconv.FormatFloat(r.Float(), 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	case reflect.Struct: // a decimal: scale and value
		return fmt.Sprintf("{%v,%v}", r.Field(0), r.Field(1))
	case reflect.Slice: // a table: names and values
		fields := make([]string, r.Len())
		for i := range fields {
			name, value := r.Index(i).Field(0), r.Index(i).Field(1).Interface()
			fields[i] = "{" + term(name.String()) + "," + fieldType(value) + "," + term(value) + "}"
		}
		return "[" + strings.Join(fields, ",") + "]"
	}
	return fmt.Sprint(v)
}

// fieldType is the name that RabbitMQ prints for the type of a field.
func fieldType(v any) string {
	switch v.(type) {
	case nil:
		return "void"
	case bool:
		return "bool"
	case int8:
		return "byte"
	case uint8:
		return "unsignedbyte"
	case int16:
		return "short"
	case uint16:
		return "unsignedshort"
	case int32:
		return "signedint"
	case uint32:
		return "unsignedint"
	case int64:
		return "long"
	case float32:
		return "float"
	case float64:
		return "double"
	case string:
		return "longstr"
	case []byte:
		return "binary"
	case []any:
		return "array"
	}
	if _, _, ok := integer(v); ok {
		return "timestamp"
	}
	if reflect.ValueOf(v).Kind() == reflect.Struct {
		return "decimal"
	}
	return "table"
}
