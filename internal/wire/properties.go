package wire

import "encoding/binary"

// Property flags of class basic, section 4.2.6.1 of AMQP 0-9-1: the first
// property is the highest bit.
const (
	FlagContentType     = 1 << 15
	FlagContentEncoding = 1 << 14
	FlagHeaders         = 1 << 13
	FlagDeliveryMode    = 1 << 12
	FlagPriority        = 1 << 11
	FlagCorrelationID   = 1 << 10
	FlagReplyTo         = 1 << 9
	FlagExpiration      = 1 << 8
	FlagMessageID       = 1 << 7
	FlagTimestamp       = 1 << 6
	FlagType            = 1 << 5
	FlagUserID          = 1 << 4
	FlagAppID           = 1 << 3
	FlagClusterID       = 1 << 2
)

// noProperty are the bits that stand for no property. AMQP announces a second
// flags word by the lowest, but class basic has none: RabbitMQ ignores both.
const noProperty = 1<<1 | 1<<0

// Values of the delivery-mode property.
const (
	Transient  = 1
	Persistent = 2
)

// PropertyView shows the properties of a message where they lie in the frame:
// its slices alias the octets it was made from and are nil for absent
// properties.
type PropertyView struct {
	Flags           uint16 // which properties are present
	DeliveryMode    uint8
	Priority        uint8
	Timestamp       Timestamp
	ContentType     []byte
	ContentEncoding []byte
	Headers         []byte // content of a well-formed table, without its length
	CorrelationID   []byte
	ReplyTo         []byte
	Expiration      []byte
	MessageID       []byte
	Type            []byte
	UserID          []byte
	AppID           []byte
	ClusterID       []byte
}

// Has reports whether the property of that flag is present.
func (v *PropertyView) Has(flag uint16) bool { return v.Flags&flag != 0 }

// Header returns the header called name, decoding only that one.
func (v *PropertyView) Header(name string) (any, bool) {
	return LookupTable(v.Headers, name)
}

var errProperties = &Exception{Code: SyntaxError, Text: "malformed content properties"}

// ViewProperties parses property flags and property list as they stand in a
// content header frame behind the body size. It allocates nothing and checks
// the headers table as well. Malformed properties are a syntax error (502), as
// AMQP has it; RabbitMQ reports an internal error.
func ViewProperties(raw []byte) (PropertyView, error) {
	var v PropertyView
	if len(raw) < 2 {
		return v, errProperties
	}
	flags, b := binary.BigEndian.Uint16(raw)&^noProperty, raw[2:]
	v.Flags = flags
	ok := true
	short := func(flag uint16) (s []byte) {
		if flags&flag != 0 && ok {
			s, b, ok = cutShort(b)
		}
		return s
	}
	octet := func(flag uint16) (o uint8) {
		if flags&flag == 0 || !ok {
			return 0
		}
		if ok = len(b) > 0; ok {
			o, b = b[0], b[1:]
		}
		return o
	}
	v.ContentType = short(FlagContentType)
	v.ContentEncoding = short(FlagContentEncoding)
	if flags&FlagHeaders != 0 && ok {
		if v.Headers, b, ok = cutLong(b); ok {
			if err := ValidateTable(v.Headers); err != nil {
				return PropertyView{}, err
			}
		}
	}
	v.DeliveryMode = octet(FlagDeliveryMode)
	v.Priority = octet(FlagPriority)
	v.CorrelationID = short(FlagCorrelationID)
	v.ReplyTo = short(FlagReplyTo)
	v.Expiration = short(FlagExpiration)
	v.MessageID = short(FlagMessageID)
	if flags&FlagTimestamp != 0 && ok {
		if ok = len(b) >= 8; ok {
			v.Timestamp, b = Timestamp(binary.BigEndian.Uint64(b)), b[8:]
		}
	}
	v.Type = short(FlagType)
	v.UserID = short(FlagUserID)
	v.AppID = short(FlagAppID)
	v.ClusterID = short(FlagClusterID)
	if !ok || len(b) != 0 {
		return PropertyView{}, errProperties
	}
	return v, nil
}

// Properties are the properties of a message as a value of its own. Flags says
// which of them are present.
type Properties struct {
	Flags           uint16
	ContentType     string
	ContentEncoding string
	Headers         Table
	DeliveryMode    uint8 // Transient or Persistent
	Priority        uint8
	CorrelationID   string
	ReplyTo         string
	Expiration      string // milliseconds, as decimal digits
	MessageID       string
	Timestamp       Timestamp
	Type            string
	UserID          string
	AppID           string
	ClusterID       string
}

// ParseProperties parses what ViewProperties parses into values that do not
// alias raw.
func ParseProperties(raw []byte) (Properties, error) {
	v, err := ViewProperties(raw)
	if err != nil {
		return Properties{}, err
	}
	headers, err := ParseTable(v.Headers)
	if err != nil {
		return Properties{}, err
	}
	return Properties{
		Flags:           v.Flags,
		ContentType:     string(v.ContentType),
		ContentEncoding: string(v.ContentEncoding),
		Headers:         headers,
		DeliveryMode:    v.DeliveryMode,
		Priority:        v.Priority,
		CorrelationID:   string(v.CorrelationID),
		ReplyTo:         string(v.ReplyTo),
		Expiration:      string(v.Expiration),
		MessageID:       string(v.MessageID),
		Timestamp:       v.Timestamp,
		Type:            string(v.Type),
		UserID:          string(v.UserID),
		AppID:           string(v.AppID),
		ClusterID:       string(v.ClusterID),
	}, nil
}

// Has reports whether the property of that flag is present.
func (p *Properties) Has(flag uint16) bool { return p.Flags&flag != 0 }

// AppendTo appends flags and property list; exactly the flagged properties are
// written, zero or not.
func (p Properties) AppendTo(dst []byte) []byte {
	flags := p.Flags &^ noProperty
	dst = binary.BigEndian.AppendUint16(dst, flags)
	short := func(flag uint16, s string) {
		if flags&flag != 0 {
			dst = appendShort(dst, s)
		}
	}
	short(FlagContentType, p.ContentType)
	short(FlagContentEncoding, p.ContentEncoding)
	if flags&FlagHeaders != 0 {
		dst = AppendTable(dst, p.Headers)
	}
	if flags&FlagDeliveryMode != 0 {
		dst = append(dst, p.DeliveryMode)
	}
	if flags&FlagPriority != 0 {
		dst = append(dst, p.Priority)
	}
	short(FlagCorrelationID, p.CorrelationID)
	short(FlagReplyTo, p.ReplyTo)
	short(FlagExpiration, p.Expiration)
	short(FlagMessageID, p.MessageID)
	if flags&FlagTimestamp != 0 {
		dst = binary.BigEndian.AppendUint64(dst, uint64(p.Timestamp))
	}
	short(FlagType, p.Type)
	short(FlagUserID, p.UserID)
	short(FlagAppID, p.AppID)
	short(FlagClusterID, p.ClusterID)
	return dst
}
