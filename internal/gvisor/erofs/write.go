package erofs

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

const (
	superOffset = 1024
	superMagic  = 0xE0F5E1E2
	inodeSize   = 64
	slotSize    = 32
	direntSize  = 12
	maxInline   = 1024
	layoutPlain = 0
	layoutTail  = 2
)

// Close writes inodes, folders and the superblock. The caller closes the file.
func (b *Builder) Close() error {
	if b.err != nil {
		return b.err
	}
	nodes := b.collect()
	metaBlock := b.block
	metaSize := place(nodes)
	next := metaBlock + uint32((metaSize+blockSize-1)/blockSize)
	for _, n := range nodes { // contents of folders and long links follow the inodes
		if (n.kind == TypeDir || n.kind == TypeSymlink) && !n.inline {
			n.block = next
			next += uint32((n.size + blockSize - 1) / blockSize)
		}
	}
	w := &counter{w: bufio.NewWriterSize(b.out, 1<<20)}
	for i, n := range nodes {
		w.fill(int64(n.nid) * slotSize)
		w.inode(n, uint32(i+1))
	}
	w.align()
	for _, n := range nodes {
		if (n.kind == TypeDir || n.kind == TypeSymlink) && !n.inline {
			w.bytes(n.payload())
			w.align()
		}
	}
	if w.err == nil {
		w.err = w.w.Flush()
	}
	if w.err != nil {
		return fmt.Errorf("write image: %w", w.err)
	}
	return b.super(metaBlock, next, nodes)
}

// collect lists every inode once, the root first, and counts links.
func (b *Builder) collect() []*node {
	seen := map[*node]bool{b.root: true}
	nodes := []*node{b.root}
	for i := 0; i < len(nodes); i++ {
		n := nodes[i]
		if n.kind != TypeDir {
			continue
		}
		n.links += 2
		for _, name := range n.names() {
			if name == "." || name == ".." {
				continue
			}
			c := n.children[name]
			if c.kind == TypeDir {
				n.links++
			} else {
				c.links++
			}
			if !seen[c] {
				seen[c] = true
				nodes = append(nodes, c)
			}
		}
	}
	return nodes
}

// place gives each inode its number and says how large the inode area is.
// Number 0 is not used: programs take a directory entry with inode 0 as deleted.
func place(nodes []*node) int64 {
	off := int64(inodeSize)
	for _, n := range nodes {
		if n.kind == TypeDir {
			n.size = dirSize(n.names())
		}
		need := int64(inodeSize)
		if (n.kind == TypeDir || n.kind == TypeSymlink) && n.size <= maxInline {
			n.inline = true
			need += int64(n.size)
		}
		if off%blockSize+need > blockSize {
			off += blockSize - off%blockSize
		}
		n.nid = uint64(off / slotSize)
		off += (need + slotSize - 1) / slotSize * slotSize
	}
	return off
}

// dirSize is the length of a folder's content: whole blocks and a last part.
func dirSize(names []string) uint64 {
	var full, used uint64
	for _, name := range names {
		need := uint64(direntSize + len(name))
		if used+need > blockSize {
			full += blockSize
			used = 0
		}
		used += need
	}
	return full + used
}

// payload is the content of a folder or link.
func (n *node) payload() []byte {
	if n.kind == TypeSymlink {
		return []byte(n.target)
	}
	out := make([]byte, 0, n.size)
	names := n.names()
	for len(names) > 0 {
		count, used := 0, 0
		for count < len(names) && used+direntSize+len(names[count]) <= blockSize {
			used += direntSize + len(names[count])
			count++
		}
		out = append(out, n.dirBlock(names[:count])...)
		if names = names[count:]; len(names) > 0 {
			out = append(out, make([]byte, blockSize-used)...)
		}
	}
	return out
}

func (n *node) dirBlock(names []string) []byte {
	var heads, tail []byte
	nameOff := direntSize * len(names)
	for _, name := range names {
		c := n.child(name)
		heads = binary.LittleEndian.AppendUint64(heads, c.nid)
		heads = binary.LittleEndian.AppendUint16(heads, uint16(nameOff+len(tail)))
		heads = append(heads, direntType(c.kind), 0)
		tail = append(tail, name...)
	}
	return append(heads, tail...)
}

func direntType(kind uint32) byte {
	switch kind {
	case TypeRegular:
		return 1
	case TypeDir:
		return 2
	case TypeChar:
		return 3
	case TypeBlock:
		return 4
	case TypeFIFO:
		return 5
	case TypeSymlink:
		return 7
	}
	return 0
}

func (b *Builder) super(metaBlock, blocks uint32, nodes []*node) error {
	sb := make([]byte, 128)
	le := binary.LittleEndian
	le.PutUint32(sb[0:], superMagic)
	sb[12] = 12 // log2 of the block size
	le.PutUint16(sb[14:], uint16(nodes[0].nid))
	le.PutUint64(sb[16:], uint64(len(nodes)))
	le.PutUint32(sb[36:], blocks)
	le.PutUint32(sb[40:], metaBlock)
	if _, err := b.out.Seek(superOffset, io.SeekStart); err != nil {
		return fmt.Errorf("write superblock: %w", err)
	}
	if _, err := b.out.Write(sb); err != nil {
		return fmt.Errorf("write superblock: %w", err)
	}
	return nil
}

// counter writes and knows where it is; after an error it does nothing.
type counter struct {
	w   *bufio.Writer
	off int64
	err error
}

func (c *counter) bytes(p []byte) {
	if c.err == nil {
		_, c.err = c.w.Write(p)
		c.off += int64(len(p))
	}
}

func (c *counter) fill(to int64) {
	if to > c.off {
		c.bytes(make([]byte, to-c.off))
	}
}

func (c *counter) align() { c.fill((c.off + blockSize - 1) / blockSize * blockSize) }

func (c *counter) inode(n *node, ino uint32) {
	layout, block := uint16(layoutPlain), n.block
	if n.inline {
		layout, block = layoutTail, 0
	}
	le := binary.LittleEndian
	p := make([]byte, inodeSize)
	le.PutUint16(p[0:], 1|layout<<1)
	le.PutUint16(p[4:], uint16(n.kind|n.attr.Mode&0o7777))
	le.PutUint64(p[8:], n.size)
	le.PutUint32(p[16:], block)
	le.PutUint32(p[20:], ino)
	le.PutUint32(p[24:], n.attr.UID)
	le.PutUint32(p[28:], n.attr.GID)
	le.PutUint64(p[32:], uint64(n.attr.Mtime.Unix()))
	le.PutUint32(p[40:], uint32(n.attr.Mtime.Nanosecond()))
	le.PutUint32(p[44:], n.links)
	if n.attr.Mtime.IsZero() {
		le.PutUint64(p[32:], 0)
	}
	c.bytes(p)
	if n.inline {
		c.bytes(n.payload())
	}
}
