package wire

// TypeName is RabbitMQ's name for the field type of a table value, as it stands in
// its error texts ("longstr", "signedint"), or "unknown".
func TypeName(v any) string {
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
	case Decimal:
		return "decimal"
	case string:
		return "longstr"
	case []any:
		return "array"
	case Timestamp:
		return "timestamp"
	case Table:
		return "table"
	case []byte:
		return "binary"
	}
	return "unknown"
}
