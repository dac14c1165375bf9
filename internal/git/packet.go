package git

import (
	"errors"
	"fmt"
	"io"
	"strconv"
)

// MaxPacket is the longest packet of git's protocol, its length included.
const MaxPacket = 65520

// Flush is the packet that ends a list.
const Flush = "0000"

// ErrProtocol says that what was read is not git's protocol.
var ErrProtocol = errors.New("not git's protocol")

// Packet makes one packet of text.
func Packet(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }

// ReadPacket reads one packet. A flush packet is nil data.
func ReadPacket(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(string(head[:]), 16, 16)
	switch {
	case err != nil:
		return nil, ErrProtocol
	case n == 0:
		return nil, nil
	case n < 4 || n > MaxPacket:
		return nil, ErrProtocol
	}
	data := make([]byte, n-4)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, ErrProtocol
	}
	return data, nil
}
