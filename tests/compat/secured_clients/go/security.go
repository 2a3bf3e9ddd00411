package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// connect is a client with the security that the question names.
func connect(q Question, more ...kgo.Opt) (*kgo.Client, error) {
	config, err := tlsConfig(q)
	if err != nil {
		return nil, err
	}
	options := []kgo.Opt{kgo.SeedBrokers(q.Bootstrap), kgo.DialTLSConfig(config), kgo.RequestRetries(0)}
	if q.Mechanism != "" {
		mechanism, err := mechanismOf(q)
		if err != nil {
			return nil, err
		}
		options = append(options, kgo.SASL(mechanism))
	}
	return kgo.NewClient(append(options, more...)...)
}

func tlsConfig(q Question) (*tls.Config, error) {
	config := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	trusted, err := os.ReadFile(q.CA)
	if err != nil {
		return nil, err
	}
	if !config.RootCAs.AppendCertsFromPEM(trusted) {
		return nil, fmt.Errorf("%s has no certificate", q.CA)
	}
	if q.Certificate != "" {
		own, err := tls.LoadX509KeyPair(q.Certificate, q.Key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config, nil
}

func mechanismOf(q Question) (sasl.Mechanism, error) {
	switch q.Mechanism {
	case "PLAIN":
		return plain.Auth{User: q.User, Pass: q.Password}.AsMechanism(), nil
	case "SCRAM-SHA-256":
		return scram.Auth{User: q.User, Pass: q.Password}.AsSha256Mechanism(), nil
	case "SCRAM-SHA-512":
		return scram.Auth{User: q.User, Pass: q.Password}.AsSha512Mechanism(), nil
	case "OAUTHBEARER":
		return oauth.Oauth(func(context.Context) (oauth.Auth, error) {
			return oauth.Auth{Token: q.Token}, nil
		}), nil
	}
	return nil, fmt.Errorf("unknown mechanism %q", q.Mechanism)
}
