// Package erofs writes EROFS file system images that gVisor can mount as they
// are: every inode extended (times and large owners kept), regular files never
// inline (gVisor cannot map those, and git maps small files), no extended
// attributes (gVisor refuses an inode that has any), hard links shared.
//
// A [Builder] is fed entries in any order, the way tar layers come: a later
// entry replaces an earlier one, and entries can be removed. File contents go
// straight to their place in the image; names and inodes follow at [Builder.Close].
// Nothing is ever created on the host but the image file itself, so that hostile
// names, links and owners in an archive have nothing to attack.
package erofs

import (
	"errors"
	"fmt"
	"io"
	"path"
	"sort"
	"strings"
	"time"
)

// File types and permission bits of a mode, as Linux has them.
const (
	TypeMask    = 0o170000
	TypeDir     = 0o040000
	TypeRegular = 0o100000
	TypeSymlink = 0o120000
	TypeChar    = 0o020000
	TypeBlock   = 0o060000
	TypeFIFO    = 0o010000
)

const (
	blockSize  = 4096
	maxName    = 255
	maxTarget  = 4095
	maxEntries = 4 << 20
)

// ErrTooLarge is returned when an image would pass its bound.
var ErrTooLarge = errors.New("image exceeds its size limit")

// Attr is what an entry has besides its content.
type Attr struct {
	Mode  uint32 // permission bits; the type is given by the method
	UID   uint32
	GID   uint32
	Mtime time.Time
}

type node struct {
	attr     Attr
	kind     uint32
	size     uint64
	block    uint32 // first data block, or device number
	target   string
	children map[string]*node
	parent   *node
	links    uint32
	layer    int // in which it came, or something below it

	nid    uint64
	inline bool
}

// Builder makes one image. It is not safe for concurrent use.
type Builder struct {
	out      io.WriteSeeker
	root     *node
	block    uint32 // next free block
	maxBytes int64
	entries  int
	layer    int
	err      error
}

// New returns a builder that writes to out, which must be empty. maxBytes bounds
// the contents; 0 means no bound.
func New(out io.WriteSeeker, maxBytes int64) (*Builder, error) {
	b := &Builder{out: out, block: 1, maxBytes: maxBytes}
	b.root = &node{kind: TypeDir, attr: Attr{Mode: 0o755}, children: map[string]*node{}}
	b.root.parent = b.root
	if _, err := out.Write(make([]byte, blockSize)); err != nil {
		return nil, fmt.Errorf("write image: %w", err)
	}
	return b, nil
}

// clean splits a name into its parts. "..", empty and overlong parts are refused.
func clean(name string) ([]string, error) {
	p := strings.Trim(path.Clean("/"+name), "/")
	if strings.ContainsRune(p, 0) {
		return nil, fmt.Errorf("name %q holds a zero byte", name)
	}
	for _, part := range strings.Split(name, "/") {
		if part == ".." {
			return nil, fmt.Errorf("name %q leaves the image", name)
		}
	}
	if p == "" {
		return nil, nil
	}
	parts := strings.Split(p, "/")
	for _, part := range parts {
		if len(part) > maxName {
			return nil, fmt.Errorf("name %.40q… is longer than %d bytes", part, maxName)
		}
	}
	return parts, nil
}

// maxHops bounds the links on the way to one name.
const maxHops = 40

// walk goes to the folder that parts name, following links inside the image the
// way a process with this root would. Missing folders are made when grow is set,
// and what is in the way of one is replaced; else the result is nil.
func (b *Builder) walk(parts []string, grow bool) (*node, error) {
	n, hops := b.root, 0
	for len(parts) > 0 {
		p := parts[0]
		parts = parts[1:]
		if p == "" || p == "." {
			continue
		}
		if p == ".." {
			n = n.parent
			continue
		}
		c := n.children[p]
		if c != nil && c.kind == TypeSymlink {
			if hops++; hops > maxHops {
				return nil, fmt.Errorf("too many links on the way to %s", p)
			}
			if strings.HasPrefix(c.target, "/") {
				n = b.root
			}
			parts = append(strings.Split(c.target, "/"), parts...)
			continue
		}
		if c == nil || c.kind != TypeDir {
			if !grow {
				return nil, nil
			}
			c = &node{kind: TypeDir, attr: Attr{Mode: 0o755}, children: map[string]*node{}, parent: n}
			n.children[p] = c
			if b.entries++; b.entries > maxEntries {
				return nil, ErrTooLarge
			}
		}
		if grow {
			c.layer = b.layer
		}
		n = c
	}
	return n, nil
}

// lookup finds the entry name itself; nil when it is not there.
func (b *Builder) lookup(parts []string) *node {
	if len(parts) == 0 {
		return b.root
	}
	dir, err := b.walk(parts[:len(parts)-1], false)
	if err != nil || dir == nil {
		return nil
	}
	return dir.children[parts[len(parts)-1]]
}

// Layer begins a new layer: what is removed from now on is removed from the
// layers before it only.
func (b *Builder) Layer() { b.layer++ }

func (b *Builder) put(name string, n *node) error {
	parts, err := clean(name)
	if err != nil {
		return err
	}
	if len(parts) == 0 {
		if n.kind != TypeDir {
			return fmt.Errorf("the root must be a folder")
		}
		b.root.attr = n.attr
		return nil
	}
	if b.entries++; b.entries > maxEntries {
		return ErrTooLarge
	}
	dir, err := b.walk(parts[:len(parts)-1], true)
	if err != nil {
		return err
	}
	n.layer = b.layer
	last := parts[len(parts)-1]
	if old := dir.children[last]; old != nil && old.kind == TypeDir && n.kind == TypeDir {
		old.attr, old.layer = n.attr, b.layer
		return nil
	}
	if n.kind == TypeDir {
		n.children = map[string]*node{}
	}
	n.parent = dir
	dir.children[last] = n
	return nil
}

// Dir adds a folder, or gives an existing one its attributes.
func (b *Builder) Dir(name string, a Attr) error {
	return b.put(name, &node{kind: TypeDir, attr: a})
}

// Symlink adds a symbolic link; its target is kept as it is.
func (b *Builder) Symlink(name, target string, a Attr) error {
	if target == "" || len(target) > maxTarget {
		return fmt.Errorf("link %s: target of %d bytes", name, len(target))
	}
	a.Mode = 0o777
	return b.put(name, &node{kind: TypeSymlink, attr: a, target: target, size: uint64(len(target))})
}

// Device adds a character device, block device or FIFO; kind is one of the Type
// constants.
func (b *Builder) Device(name string, kind, rdev uint32, a Attr) error {
	return b.put(name, &node{kind: kind, attr: a, block: rdev})
}

// Link makes name another name of the file at old, which must be there.
func (b *Builder) Link(name, old string) error {
	parts, err := clean(old)
	if err != nil {
		return err
	}
	n := b.lookup(parts)
	if n == nil || n.kind == TypeDir {
		return fmt.Errorf("hard link %s: %s is not a file of the image", name, old)
	}
	parent := n.parent
	err = b.put(name, n)
	n.parent = parent
	return err
}

// Clone adds a regular file with the content of the one at old, stored once, and
// attributes of its own.
func (b *Builder) Clone(name, old string, a Attr) error {
	parts, err := clean(old)
	if err != nil {
		return err
	}
	n := b.lookup(parts)
	if n == nil || n.kind != TypeRegular {
		return fmt.Errorf("clone %s: %s is not a file of the image", name, old)
	}
	return b.put(name, &node{kind: TypeRegular, attr: a, size: n.size, block: n.block})
}

// File adds a regular file with the content of r.
func (b *Builder) File(name string, a Attr, r io.Reader) error {
	if b.err != nil {
		return b.err
	}
	n := &node{kind: TypeRegular, attr: a, block: b.block}
	limit := int64(1 << 62)
	if b.maxBytes > 0 {
		limit = b.maxBytes - int64(b.block)*blockSize
	}
	size, err := io.Copy(b.out, io.LimitReader(r, limit+1))
	if err == nil && size > limit {
		err = ErrTooLarge
	}
	if err == nil {
		err = b.pad(size)
	}
	if err != nil {
		b.err = fmt.Errorf("add %s: %w", name, err) // the image is torn now
		return b.err
	}
	n.size = uint64(size)
	b.block += uint32((size + blockSize - 1) / blockSize)
	return b.put(name, n)
}

func (b *Builder) pad(written int64) error {
	if rest := written % blockSize; rest != 0 {
		_, err := b.out.Write(make([]byte, blockSize-rest))
		return err
	}
	return nil
}

// Remove deletes name and all below it, as far as it came with earlier layers; a
// missing one is fine.
func (b *Builder) Remove(name string) error {
	parts, err := clean(name)
	if err != nil || len(parts) == 0 {
		return err
	}
	dir, err := b.walk(parts[:len(parts)-1], false)
	if err != nil || dir == nil {
		return err
	}
	last := parts[len(parts)-1]
	if n := dir.children[last]; n != nil && !b.keep(n) {
		delete(dir.children, last)
	}
	return nil
}

// Clear deletes all below the folder name that came with earlier layers.
func (b *Builder) Clear(name string) error {
	parts, err := clean(name)
	if err != nil {
		return err
	}
	n, err := b.walk(parts, false)
	if err == nil && n != nil {
		b.keep(n)
	}
	return err
}

// keep prunes n to what came with this layer and says whether anything did.
func (b *Builder) keep(n *node) bool {
	for name, c := range n.children {
		if !b.keep(c) {
			delete(n.children, name)
		}
	}
	return n.layer == b.layer
}

// Has says whether name is in the image.
func (b *Builder) Has(name string) bool {
	parts, err := clean(name)
	return err == nil && b.lookup(parts) != nil
}

// names returns the sorted entries of a folder, with "." and "..".
func (n *node) names() []string {
	all := make([]string, 0, len(n.children)+2)
	all = append(all, ".", "..")
	for name := range n.children {
		all = append(all, name)
	}
	sort.Strings(all)
	return all
}

func (n *node) child(name string) *node {
	switch name {
	case ".":
		return n
	case "..":
		return n.parent
	}
	return n.children[name]
}

// ReadFile returns the content of a regular file that was added before. The
// output must be readable.
func (b *Builder) ReadFile(name string, maxBytes int64) ([]byte, error) {
	parts, err := clean(name)
	if err != nil {
		return nil, err
	}
	n := b.lookup(parts)
	r, ok := b.out.(io.ReaderAt)
	if n == nil || n.kind != TypeRegular || !ok || int64(n.size) > maxBytes {
		return nil, fmt.Errorf("%s is not a readable file of the image", name)
	}
	data := make([]byte, n.size)
	if _, err := r.ReadAt(data, int64(n.block)*blockSize); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return data, nil
}
