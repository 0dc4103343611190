package access

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"slices"
	"strings"
)

// CertificateName is which part of a client certificate is the name of its user, RabbitMQ's ssl_cert_login_from.
type CertificateName int

// What a user name may come from.
const (
	// DistinguishedName is the whole subject, the last part first, as in "CN=alice,O=Example".
	DistinguishedName CertificateName = iota
	// CommonName is the subject's CN.
	CommonName
)

var commonName = asn1.ObjectIdentifier{2, 5, 4, 3}

// Of is the user name that a certificate stands for; false if it has none.
func (n CertificateName) Of(certificate *x509.Certificate) (string, bool) {
	var subject pkix.RDNSequence
	if rest, err := asn1.Unmarshal(certificate.RawSubject, &subject); err != nil || len(rest) > 0 {
		return "", false
	}
	var parts, names []string
	for _, set := range slices.Backward(subject) {
		var part []string
		for _, a := range set {
			value := fmt.Sprint(a.Value)
			part = append(part, attributeName(a.Type)+"="+escapeValue(value))
			if a.Type.Equal(commonName) {
				names = append([]string{value}, names...)
			}
		}
		parts = append(parts, strings.Join(part, "+"))
	}
	if n == CommonName {
		parts = names
	}
	name := strings.Join(parts, ",")
	return name, name != ""
}

// attributeName is the name of a type of attribute, or its number if it has none that RabbitMQ knows.
func attributeName(id asn1.ObjectIdentifier) string {
	number := id.String()
	for _, known := range [...]struct{ number, name string }{
		{"2.5.4.3", "CN"}, {"2.5.4.4", "SN"}, {"2.5.4.5", "SERIALNUMBER"}, {"2.5.4.6", "C"}, {"2.5.4.7", "L"}, {"2.5.4.8", "ST"},
		{"2.5.4.9", "STREET"}, {"2.5.4.10", "O"}, {"2.5.4.11", "OU"}, {"2.5.4.12", "TITLE"}, {"2.5.4.42", "GIVENNAME"},
		{"2.5.4.43", "INITIALS"}, {"2.5.4.44", "GENERATIONQUALIFIER"}, {"2.5.4.65", "PSEUDONYM"},
		{"0.9.2342.19200300.100.1.25", "DC"}, {"0.9.2342.19200300.100.1.1", "UID"}, {"1.2.840.113549.1.9.1", "EMAILADDRESS"},
	} {
		if known.number == number {
			return known.name
		}
	}
	return number
}

// escapeValue escapes a value as RFC 4514 says, and all octets that are not printable ASCII, as RabbitMQ does.
func escapeValue(value string) string {
	var b strings.Builder
	for i := range len(value) {
		switch c := value[i]; {
		case i == 0 && (c == ' ' || c == '#'), i == len(value)-1 && c == ' ', strings.IndexByte(`"+,;<>\`, c) >= 0:
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 32 || c >= 126:
			fmt.Fprintf(&b, "\\%02X", c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
