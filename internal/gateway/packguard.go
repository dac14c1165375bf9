package gateway

import (
	"bufio"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"io"

	"agentsquad/internal/git"
)

// errUnpacks says that a pack holds more than its sender may send.
var errUnpacks = errors.New("the pack unpacks to more than allowed")

// Kinds of objects that are differences to others: one in the same pack, or any.
const (
	packOffsetDelta = 6
	packNameDelta   = 7
)

// guardPack passes a pack on and adds up what its objects unpack to, by what each
// says of itself before it is unpacked. A small pack can hold files of any size, so
// that its own length says little; git is stopped before it spends time, memory or
// disk on them. Names of objects have nameSize bytes.
func guardPack(r io.Reader, w io.Writer, nameSize int, most int64) error {
	in := bufio.NewReaderSize(io.TeeReader(r, w), 64<<10)
	var head [12]byte
	if _, err := io.ReadFull(in, head[:]); err != nil || string(head[:4]) != "PACK" {
		return git.ErrProtocol
	}
	g := packGuard{in: in, left: most, name: make([]byte, nameSize)}
	for range binary.BigEndian.Uint32(head[8:]) {
		if err := g.object(); err != nil {
			return err
		}
	}
	_, err := io.Copy(io.Discard, in) // the checksum, which git compares
	return err
}

type packGuard struct {
	in   *bufio.Reader
	zip  io.ReadCloser
	name []byte
	left int64
}

func (g *packGuard) object() error {
	kind, size, err := g.header()
	if err != nil {
		return err
	}
	if err := g.count(size); err != nil {
		return err
	}
	switch kind {
	case packOffsetDelta:
		for more := true; more; {
			b, err := g.in.ReadByte()
			if err != nil {
				return git.ErrProtocol
			}
			more = b&0x80 != 0
		}
	case packNameDelta:
		if _, err := io.ReadFull(g.in, g.name); err != nil {
			return git.ErrProtocol
		}
	}
	return g.content(kind == packOffsetDelta || kind == packNameDelta, size)
}

// header reads kind and length of an object.
func (g *packGuard) header() (kind byte, size int64, err error) {
	b, err := g.in.ReadByte()
	if err != nil {
		return 0, 0, git.ErrProtocol
	}
	kind, size = b>>4&7, int64(b&15)
	for shift := 4; b&0x80 != 0; shift += 7 {
		if b, err = g.in.ReadByte(); err != nil || shift > 53 {
			return 0, 0, git.ErrProtocol
		}
		size |= int64(b&0x7f) << shift
	}
	return kind, size, nil
}

func (g *packGuard) count(size int64) error {
	if g.left -= size; g.left < 0 || size < 0 {
		return errUnpacks
	}
	return nil
}

// content skips the packed bytes of an object. Of a difference it reads what it makes.
func (g *packGuard) content(delta bool, size int64) (err error) {
	if g.zip == nil {
		g.zip, err = zlib.NewReader(g.in)
	} else {
		err = g.zip.(zlib.Resetter).Reset(g.in, nil)
	}
	if err != nil {
		return git.ErrProtocol
	}
	out := &io.LimitedReader{R: g.zip, N: size + 1}
	if delta {
		if err := g.result(out); err != nil {
			return err
		}
	}
	if _, err := io.Copy(io.Discard, out); err != nil || out.N != 1 {
		return git.ErrProtocol // broken, or of another length than it says
	}
	return nil
}

// result reads how large the base and the outcome of a difference are.
func (g *packGuard) result(r io.Reader) error {
	b := bufio.NewReaderSize(r, 16)
	if _, err := binary.ReadUvarint(b); err != nil {
		return git.ErrProtocol
	}
	made, err := binary.ReadUvarint(b)
	if err != nil || made > 1<<62 {
		return git.ErrProtocol
	}
	return g.count(int64(made))
}
