package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"go.yaml.in/yaml/v3"
)

// Sources are the places that settings come from, besides the defaults.
type Sources struct {
	// Flags are the flags that were given, by name.
	Flags map[string]string
	// Getenv looks a name up in the environment.
	Getenv func(string) string
}

// Load reads the configuration: flags over environment over file over defaults.
// It returns every mistake of every source together. The returned configuration
// is usable for printing even when there is an error.
func Load(s Sources) (*Config, error) {
	c := Default()
	options := c.Options()
	byName := make(map[string]Option, len(options))
	for _, o := range options {
		byName[o.Name] = o
	}
	env := environment(options, s.Getenv)

	var errs []error
	c.Data = cmp.Or(s.Flags["data"], env["data"], DefaultData(s.Getenv))
	c.File = cmp.Or(s.Flags["config"], env["config"])
	file, err := readFile(c)
	errs = append(errs, err)

	for _, layer := range []struct {
		name   string
		values map[string]string
	}{{"file", file}, {"environment", env}, {"flag", s.Flags}} {
		for _, name := range slices.Sorted(maps.Keys(layer.values)) {
			o, known := byName[name]
			if !known {
				errs = append(errs, fmt.Errorf("%s: no such setting (in the %s)", name, layer.name))
				continue
			}
			if err := o.Value.Set(layer.values[name]); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w (from the %s)", name, err, layer.name))
				continue
			}
			c.sources[name] = layer.name
		}
	}
	if c.Data, err = filepath.Abs(c.Data); err != nil {
		errs = append(errs, fmt.Errorf("data: %w", err))
	}
	return c, errors.Join(errors.Join(errs...), c.Validate())
}

func environment(options []Option, getenv func(string) string) map[string]string {
	found := map[string]string{}
	for _, o := range options {
		for _, name := range o.Env {
			if v := getenv(name); v != "" {
				found[o.Name] = v
				break
			}
		}
	}
	return found
}

// readFile returns the settings of the file. A file that was named must exist;
// the one in the data folder need not.
func readFile(c *Config) (map[string]string, error) {
	path, named := c.File, c.File != ""
	if !named {
		path = filepath.Join(c.Data, "config.yaml")
	}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	c.File = path
	var tree map[string]any
	if err := yaml.Unmarshal(raw, &tree); err != nil {
		return nil, fmt.Errorf("config: read %s: %w", path, err)
	}
	values := make(map[string]string, len(tree))
	var errs []error
	for name, v := range tree {
		switch v := v.(type) {
		case []any:
			items := make([]string, len(v))
			for i := range v {
				items[i] = fmt.Sprint(v[i])
			}
			values[name] = strings.Join(items, ",")
		case map[string]any:
			text, err := plainTable(v)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w (in the file)", name, err))
			}
			values[name] = text
		case nil:
		default:
			values[name] = fmt.Sprint(v)
		}
	}
	return values, errors.Join(errs...)
}

// plainTable writes a table of the file as it is given elsewhere: name=value, with
// the items of a list separated by spaces.
func plainTable(table map[string]any) (string, error) {
	var rows []string
	for name, v := range table {
		switch v := v.(type) {
		case map[string]any:
			return "", errors.New("a table holds plain values and lists only")
		case []any:
			items := make([]string, len(v))
			for i := range v {
				items[i] = fmt.Sprint(v[i])
			}
			rows = append(rows, name+"="+strings.Join(items, " "))
		default:
			rows = append(rows, fmt.Sprintf("%s=%v", name, v))
		}
	}
	slices.Sort(rows)
	return strings.Join(rows, ","), nil
}

// Print writes the settings as a table, with secrets masked and where each came from.
func (c *Config) Print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range c.Rows() {
		fmt.Fprintf(tw, "%s\t%s\t%s\n", row.Name, row.Value, row.Source)
	}
	return tw.Flush()
}

// Row is one printed setting.
type Row struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"`
}

// Rows are the settings in the order of the table, secrets masked.
func (c *Config) Rows() []Row {
	var rows []Row
	for _, o := range c.Options() {
		rows = append(rows, Row{o.Name, o.Shown(), cmp.Or(c.sources[o.Name], "default")})
	}
	return rows
}
