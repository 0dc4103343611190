package access

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"slices"
)

// The names of hashing algorithms in definitions. MD5 is that of RabbitMQ before 3.6 and is only read.
const (
	SHA256 = "rabbit_password_hashing_sha256"
	SHA512 = "rabbit_password_hashing_sha512"
	MD5    = "rabbit_password_hashing_md5"
)

const saltSize = 4

// HashPassword makes what RabbitMQ keeps of a password, by [SHA256]: a salt of four random bytes and the hash of the
// salt and the password, in base64. Source: https://www.rabbitmq.com/docs/passwords#this-is-the-algorithm.
func HashPassword(password string) string {
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // never fails
	hash := digest(SHA256)(slices.Concat(salt, []byte(password)))
	return base64.StdEncoding.EncodeToString(slices.Concat(salt, hash))
}

// digest is the function of an algorithm, nil if it is unknown.
func digest(algorithm string) func([]byte) []byte {
	switch algorithm {
	case SHA256, "":
		return func(b []byte) []byte { sum := sha256.Sum256(b); return sum[:] }
	case SHA512:
		return func(b []byte) []byte { sum := sha512.Sum512(b); return sum[:] }
	case MD5:
		return func(b []byte) []byte { sum := md5.Sum(b); return sum[:] }
	}
	return nil
}

// secret is a password hash, decoded.
type secret struct {
	salt, hash []byte
	digest     func([]byte) []byte
}

// newSecret reads the hash of a user; nil for one without a password.
func newSecret(hash, algorithm string) (*secret, error) {
	if hash == "" {
		return nil, nil
	}
	digest := digest(algorithm)
	if digest == nil {
		return nil, fmt.Errorf("unknown hashing algorithm %q; it is %s, %s or %s", algorithm, SHA256, SHA512, MD5)
	}
	b, err := base64.StdEncoding.DecodeString(hash)
	if err != nil {
		return nil, fmt.Errorf("the password hash is not base64: %w", err)
	}
	if want := saltSize + len(digest(nil)); len(b) != want {
		return nil, fmt.Errorf("the password hash has %d bytes, and one of %s has %d", len(b), algorithm, want)
	}
	return &secret{b[:saltSize], b[saltSize:], digest}, nil
}

// matches compares in constant time.
func (s *secret) matches(password string) bool {
	return subtle.ConstantTimeCompare(s.digest(slices.Concat(s.salt, []byte(password))), s.hash) == 1
}
