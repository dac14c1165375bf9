package store

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// valueOf is the parameter for a field. Text is cleaned here, once for all:
// PostgreSQL refuses NUL and broken UTF-8, which a program's output may hold.
func valueOf(at any) any {
	switch p := at.(type) {
	case *string:
		return clean(*p)
	case driver.Valuer:
		v, err := p.Value()
		if err != nil {
			return badValue{err}
		}
		return v
	case *int:
		return int64(*p)
	case *int64:
		return *p
	case *bool:
		return *p
	case *float64:
		return *p
	}
	return badValue{fmt.Errorf("no column form for %T", at)}
}

// badValue carries an error to the driver, which reports it.
type badValue struct{ err error }

func (b badValue) Value() (driver.Value, error) { return nil, b.err }

func clean(s string) string {
	if strings.IndexByte(s, 0) < 0 && utf8.ValidString(s) {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// word is a column of a string type of the vocabulary.
type word[S ~string] struct{ p *S }

func wordOf[S ~string](p *S) word[S] { return word[S]{p} }

func (w word[S]) Value() (driver.Value, error) { return clean(string(*w.p)), nil }

func (w word[S]) Scan(src any) error {
	s, err := asText(src)
	*w.p = S(s)
	return err
}

// ref is text that is NULL when empty: a reference, or a name of which there
// may be none.
type ref struct{ p *string }

func (r ref) Value() (driver.Value, error) {
	if *r.p == "" {
		return nil, nil
	}
	return clean(*r.p), nil
}

func (r ref) Scan(src any) (err error) {
	*r.p, err = asText(src)
	return err
}

// moment is a time as microseconds since 1970, NULL when zero.
type moment struct{ p *time.Time }

func (m moment) Value() (driver.Value, error) {
	if m.p.IsZero() {
		return nil, nil
	}
	return m.p.UnixMicro(), nil
}

func (m moment) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*m.p = time.Time{}
	case int64:
		*m.p = time.UnixMicro(v).UTC()
	default:
		return fmt.Errorf("time is stored as %T", src)
	}
	return nil
}

// object is anything that has a JSON form.
type object struct{ p any }

func (o object) Value() (driver.Value, error) {
	s, err := plainJSON(o.p)
	if err != nil {
		return nil, err
	}
	return noNUL(s), nil
}

// plainJSON does not escape <, > and &, as PostgreSQL does not: the text of a
// value is the same in both databases.
func plainJSON(v any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

func (o object) Scan(src any) error {
	s, err := asText(src)
	if err != nil || s == "" || s == "null" || s == "[]" || s == "{}" {
		return err
	}
	return json.Unmarshal([]byte(s), o.p)
}

// noNUL replaces the escaped NUL in JSON, which PostgreSQL's JSONB refuses. A
// backslash that is itself escaped does not begin an escape.
func noNUL(s string) string {
	if !strings.Contains(s, `\u0000`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		if strings.HasPrefix(s[i:], `\u0000`) {
			b.WriteString(`\ufffd`)
			i += 5
			continue
		}
		b.WriteString(s[i : i+2])
		i++
	}
	return b.String()
}

// raw is JSON kept byte for byte as text, NULL when empty.
type raw struct{ p *json.RawMessage }

func (r raw) Value() (driver.Value, error) {
	if len(*r.p) == 0 {
		return nil, nil
	}
	if !json.Valid(*r.p) {
		return nil, errBadJSON
	}
	return clean(string(*r.p)), nil
}

func (r raw) Scan(src any) error {
	s, err := asText(src)
	*r.p = nil
	if s != "" {
		*r.p = json.RawMessage(s)
	}
	return err
}

// checked is raw that was found to be JSON before: an event's may be long, and
// looking once is enough.
type checked struct{ p *json.RawMessage }

func (c checked) Value() (driver.Value, error) { return clean(string(*c.p)), nil }
func (c checked) Scan(src any) error           { return raw(c).Scan(src) }

func asText(src any) (string, error) {
	switch v := src.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case []byte:
		return string(v), nil
	}
	return "", fmt.Errorf("text is stored as %T", src)
}
