package broker_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/broker"
	"github.com/dormousemq/dormouse/internal/access"
)

// authority makes certificates.
type authority struct {
	t           *testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t}
	made := a.sign(pkix.Name{CommonName: "authority"}, true)
	a.certificate, a.key = made.Leaf, made.PrivateKey.(*ecdsa.PrivateKey)
	return a
}

func (a *authority) sign(subject pkix.Name, isCA bool) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: subject,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: isCA, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := a.certificate, a.key
	if isCA {
		parent, signer, template.KeyUsage, template.ExtKeyUsage = template, key, x509.KeyUsageCertSign, nil
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key, Leaf: leaf}
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// secured is a broker that listens with and without TLS, and the addresses.
func secured(t *testing.T, a *authority, login broker.CertificateName, verify tls.ClientAuthType) (b *broker.Broker, plain, encrypted string) {
	t.Helper()
	b, err := broker.New(broker.Options{CertificateLogin: login})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 2)
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	one, two := listen(), listen()
	go func() { served <- b.Serve(one) }()
	go func() {
		served <- b.ServeTLS(two, &tls.Config{
			Certificates: []tls.Certificate{a.sign(pkix.Name{CommonName: "broker"}, false)}, ClientAuth: verify, ClientCAs: a.pool(),
		})
	}()
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		for range 2 {
			if err := <-served; !errors.Is(err, broker.ErrClosed) {
				t.Errorf("serve: %v", err)
			}
		}
	})
	return b, one.Addr().String(), two.Addr().String()
}

// external logs in by the mechanism EXTERNAL.
type external struct{}

func (external) Mechanism() string { return "EXTERNAL" }
func (external) Response() string  { return "" }

func TestTLS(t *testing.T) {
	a := newAuthority(t)
	b, plain, encrypted := secured(t, a, broker.CommonName, tls.VerifyClientCertIfGiven)
	ctx := t.Context()
	if err := b.Directory().PutUser(ctx, access.User{Name: "alice"}); err != nil {
		t.Fatal(err)
	}
	if err := b.Directory().PutPermission(ctx, access.Permission{User: "alice", VHost: "/", Configure: ".*", Write: ".*", Read: ".*"}); err != nil {
		t.Fatal(err)
	}
	dial := func(url string, by amqp.Authentication, certificates ...tls.Certificate) error {
		c := amqp.Config{TLSClientConfig: &tls.Config{RootCAs: a.pool(), Certificates: certificates}}
		if by != nil {
			c.SASL = []amqp.Authentication{by}
		}
		conn, err := amqp.DialConfig(url, c)
		if err != nil {
			return err
		}
		defer conn.Close()
		ch, err := conn.Channel()
		if err != nil {
			return err
		}
		// Larger than a record of TLS, to and fro.
		q, err := ch.QueueDeclare("", false, true, true, false, nil)
		if err != nil {
			return err
		}
		body := strings.Repeat("x", 100_000)
		if err := ch.PublishWithContext(ctx, "", q.Name, false, false, amqp.Publishing{Body: []byte(body)}); err != nil {
			return err
		}
		if d, _, err := ch.Get(q.Name, true); err != nil || string(d.Body) != body {
			return errors.Join(errors.New("not what was published"), err)
		}
		return nil
	}
	alice := a.sign(pkix.Name{CommonName: "alice", Organization: []string{"Example"}}, false)
	nobody := a.sign(pkix.Name{CommonName: "nobody"}, false)
	stranger := newAuthority(t).sign(pkix.Name{CommonName: "alice"}, false)
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"password":                       {dial("amqps://guest:guest@"+encrypted+"/", nil), ""},
		"password with a certificate":    {dial("amqps://guest:guest@"+encrypted+"/", nil, nobody), ""},
		"certificate":                    {dial("amqps://"+encrypted+"/", external{}, alice), ""},
		"certificate of nobody":          {dial("amqps://"+encrypted+"/", external{}, nobody), "username or password not allowed"},
		"certificate of a stranger":      {dial("amqps://"+encrypted+"/", external{}, stranger), "tls: "},
		"EXTERNAL without a certificate": {dial("amqps://"+encrypted+"/", external{}), "SASL could not negotiate"},
		"EXTERNAL without TLS":           {dial("amqp://"+plain+"/", external{}), "SASL could not negotiate"},
		"no TLS on the port for it":      {dial("amqp://guest:guest@"+encrypted+"/", nil), "EOF"},
	} {
		if c.want == "" && c.err != nil || c.want != "" && (c.err == nil || !strings.Contains(c.err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, c.err, c.want)
		}
	}
}

func TestCertificateOfADistinguishedName(t *testing.T) {
	a := newAuthority(t)
	b, _, encrypted := secured(t, a, broker.DistinguishedName, tls.RequireAndVerifyClientCert)
	certificate := a.sign(pkix.Name{CommonName: "alice", Organization: []string{"Example"}}, false)
	config := amqp.Config{
		SASL:            []amqp.Authentication{external{}},
		TLSClientConfig: &tls.Config{RootCAs: a.pool(), Certificates: []tls.Certificate{certificate}},
	}
	if _, err := amqp.DialConfig("amqps://"+encrypted+"/", config); err == nil {
		t.Error("nobody was let in")
	}
	const name = "CN=alice,O=Example"
	if err := errors.Join(b.Directory().PutUser(t.Context(), access.User{Name: name}),
		b.Directory().PutPermission(t.Context(), access.Permission{User: name, VHost: "/"})); err != nil {
		t.Fatal(err)
	}
	conn, err := amqp.DialConfig("amqps://"+encrypted+"/", config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	config.TLSClientConfig = &tls.Config{RootCAs: a.pool()}
	config.SASL = nil
	if _, err := amqp.DialConfig("amqps://guest:guest@"+encrypted+"/", config); err == nil {
		t.Error("let in without the certificate that is required")
	}
}
