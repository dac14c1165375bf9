package tunnel

import (
	"io"
	"net"
	"sync"
)

var joinBuffers = sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }}

// Join copies between a and b both ways until both directions have ended, then
// closes both. The end of one direction is passed on as a half-close; a failure
// in one ends the other.
func Join(a, b net.Conn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		copyHalf(a, b)
	}()
	copyHalf(b, a)
	<-done
	a.Close()
	b.Close()
}

func copyHalf(dst, src net.Conn) {
	buf := joinBuffers.Get().(*[]byte)
	defer joinBuffers.Put(buf)
	// The wrappers hide ReadFrom and WriteTo, which would use buffers of their own.
	_, err := io.CopyBuffer(struct{ io.Writer }{dst}, struct{ io.Reader }{src}, *buf)
	if half, ok := dst.(interface{ CloseWrite() error }); ok && err == nil {
		_ = half.CloseWrite()
		return
	}
	dst.Close()
	src.Close()
}
