package app

import (
	"context"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"agentsquad/internal/config"
	"golang.org/x/term"
)

// NewLogger makes the logger of the configuration, writing to w.
func NewLogger(cfg *config.Config, w io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.LogLevel)); err != nil {
		level = slog.LevelInfo
	}
	pretty := cfg.LogFormat == "pretty"
	colour := false
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		pretty = cfg.LogFormat != "json"
		colour = true
	}
	if pretty {
		return slog.New(&prettyHandler{out: &lineWriter{w: w}, level: level, colour: colour})
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
}

// lineWriter keeps lines whole.
type lineWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// prettyHandler writes a line that people read: time, level, message, values.
type prettyHandler struct {
	out    *lineWriter
	level  slog.Level
	colour bool
	prefix string // of groups
	attrs  string // already written
}

func (h *prettyHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level }

func (h *prettyHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(h.paint("2", r.Time.Format("15:04:05.000")))
	b.WriteByte(' ')
	b.WriteString(h.paint(levelColour(r.Level), r.Level.String()[:4]))
	b.WriteByte(' ')
	b.WriteString(r.Message)
	b.WriteString(h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		h.attr(&b, h.prefix, a)
		return true
	})
	b.WriteByte('\n')
	h.out.mu.Lock()
	defer h.out.mu.Unlock()
	_, err := io.WriteString(h.out.w, b.String())
	return err
}

func (h *prettyHandler) attr(b *strings.Builder, prefix string, a slog.Attr) {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		for _, sub := range v.Group() {
			h.attr(b, prefix+a.Key+".", sub)
		}
		return
	}
	text := v.String()
	if text == "" || strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c == '"' || c == 0x7f }) {
		text = strconv.Quote(text)
	}
	b.WriteByte(' ')
	b.WriteString(h.paint("2", prefix+a.Key+"="))
	b.WriteString(text)
}

// WithAttrs returns a handler that adds the values to each line.
func (h *prettyHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	var b strings.Builder
	for _, a := range slices.Clone(attrs) {
		h.attr(&b, h.prefix, a)
	}
	c := *h
	c.attrs += b.String()
	return &c
}

// WithGroup returns a handler that puts the name before later keys.
func (h *prettyHandler) WithGroup(name string) slog.Handler {
	c := *h
	c.prefix += name + "."
	return &c
}

func (h *prettyHandler) paint(code, text string) string {
	if !h.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func levelColour(l slog.Level) string {
	switch {
	case l >= slog.LevelError:
		return "31"
	case l >= slog.LevelWarn:
		return "33"
	case l >= slog.LevelInfo:
		return "32"
	default:
		return "2"
	}
}
