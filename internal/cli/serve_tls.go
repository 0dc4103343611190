package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"

	"github.com/spf13/pflag"

	"github.com/dormousemq/dormouse/broker"
)

// tlsOptions are the flags of `dormouse serve` for encrypted connections.
type tlsOptions struct {
	listen, certificate, key, authorities string
	verify, login                         string
}

func (o *tlsOptions) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&o.listen, "tls-listen", "", "also listen on this address for encrypted connections (amqps), such as 127.0.0.1:5671")
	flags.StringVar(&o.certificate, "tls-cert", "", "the file with the broker's certificate, and those that link it to an authority (PEM)")
	flags.StringVar(&o.key, "tls-key", "", "the file with the key of the certificate (PEM)")
	flags.StringVar(&o.authorities, "tls-ca", "", "the file with the authorities that clients' certificates must come from (PEM)")
	flags.StringVar(&o.verify, "tls-verify", "none", "clients' certificates: none (not asked for), optional or require; who has one may log in by it (EXTERNAL)")
	flags.StringVar(&o.login, "tls-login", "distinguished_name", "what of a client's certificate is the user name: distinguished_name or common_name")
}

// certificateName is the part of a client's certificate that is the user name.
func (o *tlsOptions) certificateName() (broker.CertificateName, error) {
	switch o.login {
	case "distinguished_name":
		return broker.DistinguishedName, nil
	case "common_name":
		return broker.CommonName, nil
	}
	return 0, usagef("--tls-login %q is neither distinguished_name nor common_name", o.login)
}

// config is the configuration of the listener, nil if there is to be none.
func (o *tlsOptions) config() (*tls.Config, error) {
	verify, known := map[string]tls.ClientAuthType{
		"none": tls.NoClientCert, "optional": tls.VerifyClientCertIfGiven, "require": tls.RequireAndVerifyClientCert,
	}[o.verify]
	switch {
	case !known:
		return nil, usagef("--tls-verify %q is not none, optional or require", o.verify)
	case o.listen == "" && (o.certificate != "" || o.key != "" || o.authorities != "" || o.verify != "none"):
		return nil, usagef("--tls-cert, --tls-key, --tls-ca and --tls-verify need --tls-listen, the address to listen on")
	case o.listen == "":
		return nil, nil
	case o.certificate == "" || o.key == "":
		return nil, usagef("--tls-listen needs --tls-cert and --tls-key, the broker's certificate and its key")
	case verify != tls.NoClientCert && o.authorities == "":
		return nil, usagef("--tls-verify %s needs --tls-ca, the authorities that clients' certificates must come from", o.verify)
	case verify == tls.NoClientCert && o.authorities != "":
		return nil, usagef("--tls-ca is for clients' certificates, which are not asked for without --tls-verify optional or require")
	}
	certificate, err := tls.LoadX509KeyPair(o.certificate, o.key)
	if err != nil {
		return nil, fmt.Errorf("the certificate of the broker (--tls-cert, --tls-key): %w", err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, ClientAuth: verify}
	if o.authorities != "" {
		text, err := os.ReadFile(o.authorities)
		if err != nil {
			return nil, fmt.Errorf("the authorities of clients (--tls-ca): %w", err)
		}
		if config.ClientCAs = x509.NewCertPool(); !config.ClientCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("the file of --tls-ca, %s, has no certificate in PEM form", o.authorities)
		}
	}
	return config, nil
}

// listener is the listener for encrypted connections, nil if there is to be none.
func (o *tlsOptions) listener(ctx context.Context, config *tls.Config) (net.Listener, error) {
	if config == nil {
		return nil, nil
	}
	return listenOn(ctx, "--tls-listen", o.listen)
}
