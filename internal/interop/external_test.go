package interop

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/dormousemq/dormouse/broker"
	"github.com/dormousemq/dormouse/internal/access"
)

// A certificate is the user of its subject's common name, for a client that is not Go's.
func TestExternal(t *testing.T) {
	command := python("pika", "python3-pika")(t)
	folder := t.TempDir()
	ours := newAuthority(t, folder, "authority")
	ours.sign("broker")
	ours.sign("alice")
	ours.sign("nobody")
	newAuthority(t, folder, "other").issue("alice", "stranger")

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = "external"
	cmd.Env = append(os.Environ(), "AMQP_URL=amqps://"+serveTLS(t, folder, ours.certificate), "CERTIFICATES="+folder)
	out, err := cmd.CombinedOutput()
	if err != nil || !ran.Match(out) {
		t.Fatalf("%v\n%s", err, out)
	}
}

// serveTLS runs a broker that has the user alice, who may do everything to what begins with her name.
func serveTLS(t *testing.T, folder string, authority *x509.Certificate) (address string) {
	t.Helper()
	b, err := broker.New(broker.Options{CertificateLogin: broker.CommonName})
	if err != nil {
		t.Fatal(err)
	}
	const hers = "^(alice\\..*|amq\\.default|)$"
	err = errors.Join(b.Directory().PutUser(t.Context(), access.User{Name: "alice"}),
		b.Directory().PutPermission(t.Context(), access.Permission{User: "alice", VHost: "/", Configure: hers, Write: hers, Read: hers}))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "broker.pem")
	own, err := tls.LoadX509KeyPair(file, file)
	if err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(authority)
	served := make(chan error, 1)
	go func() {
		served <- b.ServeTLS(l, &tls.Config{Certificates: []tls.Certificate{own}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: trusted})
	}()
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, broker.ErrClosed) {
			t.Errorf("ServeTLS: %v", err)
		}
	})
	return l.Addr().String()
}

// authority signs certificates and writes them to files of a folder, each with its key.
type authority struct {
	t           *testing.T
	folder      string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, folder, name string) *authority {
	t.Helper()
	a := &authority{t: t, folder: folder}
	a.certificate, a.key = a.write(name, &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

func (a *authority) sign(name string) { a.issue(name, name) }

// issue writes a certificate of the subject to the file.
func (a *authority) issue(subject, file string) {
	a.t.Helper()
	a.write(file, &x509.Certificate{
		Subject: pkix.Name{CommonName: subject}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}

func (a *authority) write(file string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	ok := func(err error) {
		a.t.Helper()
		if err != nil {
			a.t.Fatal(err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ok(err)
	template.SerialNumber, template.BasicConstraintsValid = big.NewInt(time.Now().UnixNano()), true
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.certificate, a.key
	if parent == nil {
		parent, signer = template, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	ok(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	ok(err)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	text = append(text, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	ok(os.WriteFile(filepath.Join(a.folder, file+".pem"), text, 0o600))
	made, err := x509.ParseCertificate(raw)
	ok(err)
	return made, key
}
