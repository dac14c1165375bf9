package gateway_test

import (
	"bytes"
	"compress/zlib"
	"crypto/rand"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"agentsquad/internal/gateway"
	"agentsquad/internal/git/gittest"
)

// packOf has git itself make a pack with blobs, trees, commits and differences.
func packOf(t testing.TB) []byte {
	t.Helper()
	dir := t.TempDir()
	gittest.Git(t, dir, "init", "-q")
	text := make([]byte, 40_000)
	rand.Read(text)
	for i := range 5 {
		text[i*100]++
		gittest.Write(t, dir, "large.bin", string(text))
		gittest.Commit(t, dir, "small.txt", string(rune('a'+i)), "feat: more")
	}
	gittest.Git(t, dir, "repack", "-q", "-a", "-d", "-f")
	files, err := filepath.Glob(filepath.Join(dir, ".git/objects/pack/*.pack"))
	must(t, err)
	pack, err := os.ReadFile(files[0])
	must(t, err)
	return pack
}

func TestGuardPack_PassesGitsPacksAndCountsWhatTheyUnpackTo(t *testing.T) {
	t.Parallel()
	pack := packOf(t)
	var out bytes.Buffer
	if err := gateway.GuardPackForTest(pack, &out, 1<<20); err != nil || !bytes.Equal(out.Bytes(), pack) {
		t.Fatalf("%v, %d of %d bytes", err, out.Len(), len(pack))
	}
	// Five versions of 40,000 bytes are 200,000, though the pack holds one and four
	// differences.
	if len(pack) > 100_000 {
		t.Fatalf("git made no differences: %d bytes", len(pack))
	}
	if err := gateway.GuardPackForTest(pack, &out, 190_000); !gateway.IsTooMuchForTest(err) {
		t.Errorf("differences do not count: %v", err)
	}
}

func TestGuardPack_RefusesLies(t *testing.T) {
	t.Parallel()
	var zip bytes.Buffer
	z := zlib.NewWriter(&zip)
	z.Write(make([]byte, 1000))
	z.Close()
	pack := func(head ...byte) []byte {
		b := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), 1)
		return append(append(b, head...), zip.Bytes()...)
	}
	honest := pack(0xb0|1000&15, 1000>>4)
	var out bytes.Buffer
	if err := gateway.GuardPackForTest(honest, &out, 2000); err != nil {
		t.Errorf("an honest object: %v", err)
	}
	for name, bad := range map[string][]byte{
		"shorter than it is": pack(0x30 | 15), "longer than it is": pack(0xb0|15, 0x7f), "endless length": pack(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
		"cut off": honest[:20], "no pack": []byte("nothing at all"), "more objects than there are": append([]byte("PACK\x00\x00\x00\x02\x00\x00\xff\xff"), honest[12:]...),
	} {
		if err := gateway.GuardPackForTest(bad, &out, 1<<40); err == nil {
			t.Errorf("%s: passed", name)
		}
	}
}

func FuzzGuardPack(f *testing.F) {
	f.Add(packOf(f))
	f.Add([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01\xb8\x3e"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		var out bytes.Buffer
		_ = gateway.GuardPackForTest(b, &out, 1<<20)
	})
}
