package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"agentsquad/internal/api"
)

// streamLooking is how many of the readers look at what they read.
const streamLooking = 50

// readStreams opens the streams, says "ready", and after the last event how old
// events were. It is one thread over epoll, the cheapest reader there is.
func readStreams(text string) error {
	address, token, _ := strings.Cut(text, " ")
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	poll, err := unix.EpollCreate1(0)
	if err != nil {
		return err
	}
	watch := map[int32]*watcher{}
	for i := range streamClients {
		fd, err := openStream(at, token)
		if err != nil {
			return err
		}
		if err := unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
			return err
		}
		watch[int32(fd)] = &watcher{looking: i%(streamClients/streamLooking) == 0}
	}
	events, buf := make([]unix.EpollEvent, 256), make([]byte, 256<<10)
	silent, left := streamClients, streamLooking
	var ages []time.Duration
	for left > 0 {
		n, err := unix.EpollWait(poll, events, 60_000)
		if err != nil && !errors.Is(err, unix.EINTR) || n == 0 {
			return fmt.Errorf("wait for events: %w", errors.Join(err, os.ErrDeadlineExceeded))
		}
		for _, e := range events[:max(n, 0)] {
			w := watch[e.Fd]
			got, err := unix.Read(int(e.Fd), buf)
			if err != nil || got == 0 {
				return fmt.Errorf("a stream ended early: %w", errors.Join(err, os.ErrClosed))
			}
			if !w.heard {
				w.heard = true
				if silent--; silent == 0 {
					fmt.Println("ready")
				}
			}
			if !w.looking {
				continue
			}
			before := w.count
			ages = w.look(buf[:got], time.Now().UnixNano(), ages)
			if before < streamEvents && w.count >= streamEvents {
				left--
			}
		}
	}
	slices.Sort(ages)
	ms := func(p float64) float64 { return float64(ages[int(p*float64(len(ages)-1))].Microseconds()) / 1000 }
	return json.NewEncoder(os.Stdout).Encode(delivery{P50: ms(0.50), P99: ms(0.99), Count: len(ages)})
}

func openStream(at netip.AddrPort, token string) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: at.Addr().As4(), Port: int(at.Port())}); err != nil {
		return 0, err
	}
	ask := fmt.Appendf(nil, "GET %s/sse HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer %s\r\n\r\n", api.Prefix, token)
	_, err = unix.Write(fd, ask)
	return fd, err
}

// watcher is one reader: what it has counted, and the torn end of what it read.
type watcher struct {
	looking, heard bool
	count          int
	rest           []byte
}

// look adds the ages of the events that are whole; they say when they were made.
func (w *watcher) look(p []byte, now int64, ages []time.Duration) []time.Duration {
	w.rest = append(w.rest, p...)
	rest := w.rest
	for {
		i := bytes.Index(rest, []byte(`"t":`))
		j := -1
		if i >= 0 {
			j = bytes.IndexByte(rest[i:], '}')
		}
		if j < 0 {
			break
		}
		if t, err := strconv.ParseInt(string(rest[i+4:i+j]), 10, 64); err == nil {
			ages = append(ages, time.Duration(now-t))
			w.count++
		}
		rest = rest[i+j:]
	}
	w.rest = append(w.rest[:0], rest[max(0, len(rest)-512):]...)
	return ages
}
