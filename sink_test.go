package dormouse

import (
	"bytes"
	"encoding/binary"
	"io"
	"sync"
)

// A sink is a broker that greets, takes one frame, and hangs up.
type sink struct {
	in   *bytes.Reader
	mu   sync.Mutex
	out  bytes.Buffer
	full chan struct{} // closed when a whole frame is there
}

func newSink() *sink {
	payload := []byte{0, 10, 0, 10, 0, 9, 0, 0, 0, 0}              // connection.start, version 0-9, no properties
	payload = append(payload, 0, 0, 0, 5, 'P', 'L', 'A', 'I', 'N') // mechanisms
	payload = append(payload, 0, 0, 0, 5, 'e', 'n', '_', 'U', 'S') // locales
	frame := []byte{1, 0, 0, 0, 0, 0, byte(len(payload))}          // a method on channel 0
	frame = append(append(frame, payload...), 0xCE)
	return &sink{in: bytes.NewReader(frame), full: make(chan struct{})}
}

func (s *sink) Read(b []byte) (int, error) {
	if s.in.Len() > 0 {
		return s.in.Read(b)
	}
	<-s.full
	return 0, io.EOF
}

const protocolHeader = 8

func (s *sink) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.Write(b)
	if size := s.frameSize(); size > 0 && s.out.Len() >= size {
		select {
		case <-s.full:
		default:
			close(s.full)
		}
	}
	return len(b), nil
}

// frameSize is the number of bytes of the protocol header and the first frame, 0 while that is not known.
func (s *sink) frameSize() int {
	b := s.out.Bytes()
	if len(b) < protocolHeader+7 {
		return 0
	}
	return protocolHeader + 7 + int(binary.BigEndian.Uint32(b[protocolHeader+3:])) + 1
}

func (s *sink) Close() error { return nil }

// size is the number of bytes that were sent.
func (s *sink) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.frameSize()
}
