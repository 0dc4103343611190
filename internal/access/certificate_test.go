package access

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"testing"
)

func TestCertificateName(t *testing.T) {
	attribute := func(value string, id ...int) pkix.AttributeTypeAndValue {
		return pkix.AttributeTypeAndValue{Type: id, Value: value}
	}
	for _, c := range []struct {
		subject    pkix.RDNSequence
		whole, own string
	}{
		{pkix.RDNSequence{{attribute("Example", 2, 5, 4, 10)}, {attribute("alice", 2, 5, 4, 3)}}, "CN=alice,O=Example", "alice"},
		{pkix.RDNSequence{{attribute("a", 2, 5, 4, 3)}, {attribute("b", 2, 5, 4, 3)}}, "CN=b,CN=a", "a,b"},
		{pkix.RDNSequence{{attribute("x", 2, 5, 4, 11), attribute("y", 2, 5, 4, 6)}}, "C=y+OU=x", ""}, // DER sorts a set,
		{pkix.RDNSequence{{attribute(` #a,"b" `, 2, 5, 4, 3)}}, `CN=\ #a\,\"b\"\ `, ` #a,"b" `},
		{pkix.RDNSequence{{attribute("ü~", 2, 5, 4, 3)}}, `CN=\C3\BC\7E`, "ü~"},
		{pkix.RDNSequence{{attribute("v", 1, 2, 3, 4)}}, "1.2.3.4=v", ""},
		{pkix.RDNSequence{}, "", ""},
	} {
		raw, err := asn1.Marshal(c.subject)
		if err != nil {
			t.Fatal(err)
		}
		certificate := &x509.Certificate{RawSubject: raw}
		for n, want := range map[CertificateName]string{DistinguishedName: c.whole, CommonName: c.own} {
			if got, ok := n.Of(certificate); got != want || ok != (want != "") {
				t.Errorf("%v of %v: %q, %t, want %q", n, c.subject, got, ok, want)
			}
		}
	}
	if name, ok := DistinguishedName.Of(&x509.Certificate{RawSubject: []byte("?")}); ok {
		t.Errorf("what is no subject is %q", name)
	}
}
